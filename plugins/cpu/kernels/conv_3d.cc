// SPDX-License-Identifier: Apache-2.0
// Convolutions over volumes [batch, depth, height, width, channels]: CONV_3D, CONV_3D_TRANSPOSE.
#include <algorithm>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {
namespace {

struct VolumeOptions {
  bool same;
  Slide slides[3];  // depth, height, width

  explicit VolumeOptions(const Node& n) {
    const WindowOptions plane = ReadWindowOptions(n);
    same = plane.same;
    slides[0] = ReadSlide(n.attrs(), "stride_d", "dilation_d_factor");
    slides[1] = plane.height;
    slides[2] = plane.width;
  }
};

// One spatial dimension: `small` filter positions over `large` image positions.
struct Axis3 {
  int64_t large, small, taps, before, stride, dilation;
};

struct Volume {
  Axis3 d, h, w;
  int64_t batch;

  // A convolution reads the large side and writes the small one; a transposed convolution does the opposite.
  Volume(const Tensor& large, const Tensor& small, const Tensor& filter, const VolumeOptions& o)
      : d(AxisOf(large, small, filter, o, 0)),
        h(AxisOf(large, small, filter, o, 1)),
        w(AxisOf(large, small, filter, o, 2)),
        batch(large.dim(0)) {}

  int64_t taps() const { return d.taps * h.taps * w.taps; }

 private:
  static Axis3 AxisOf(const Tensor& large, const Tensor& small, const Tensor& filter, const VolumeOptions& o,
                      int i) {
    const Slide& s = o.slides[i];
    return {large.dim(i + 1), small.dim(i + 1),
            filter.dim(i),    PaddingBefore(large.dim(i + 1), filter.dim(i), s, o.same),
            s.stride,         s.dilation};
  }
};

void CheckFilter(const Node& n, uint32_t input) {
  RequireRank(n, 1, 5);
  for (int i = 0; i < 5; ++i)
    if (DimOrUnknown(n.in(1), i) == 0) Fail("an empty filter " + Text(n.in(1).dims()), Operand(1));
  SameDtype(n, 1, input);
}

// Filter [depth, height, width, in, out].
struct Conv3D {
  static constexpr std::string_view builtin = "CONV_3D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t workers, patches, filter;
  };

  explicit Conv3D(const Node& n) : options_(n), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    RequireRank(n, 0, 5);
    CheckFilter(n, 0);
    const VolumeOptions o(n);
    const Tensor in = n.in(0), filter = n.in(1);
    SameDim(DimOrUnknown(in, 4), DimOrUnknown(filter, 3), "channels of the input and of the filter");
    CheckBias(n, 2, DimOrUnknown(filter, 4));
    const auto size = [&](int i) {
      return OutputSize(DimOrUnknown(in, i + 1), DimOrUnknown(filter, i), o.slides[i], o.same);
    };
    out.set(0, in.dtype(), {DimOrUnknown(in, 0), size(0), size(1), size(2), DimOrUnknown(filter, 4)});
  }

  // Scratch: the patches of one result row per worker, and the filter with a row per output channel.
  State prepare(const Node& n, Plan& plan) const {
    const int64_t bytes = n.in(0).dtype() == FBX_F64 ? 8 : 4;
    const int64_t patch = Count(n.in(1).dims().first(4));
    const uint32_t workers = std::max(1u, plan.threads());
    const int64_t patches = Product(Product(patch, n.out(0).dim(3)), Product(bytes, workers));
    return {workers, plan.scratch(static_cast<size_t>(patches)),
            plan.scratch(static_cast<size_t>(Product(Count(n.in(1).dims()), bytes)))};
  }

  void invoke(const Node& n, const State& state) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  template <class T>
  void Run(const Node& n, const State& state) const {
    const Tensor in = n.in(0), filter = n.in(1), out = n.out(0);
    if (out.count() == 0) return;
    const Volume v(in, out, filter, options_);
    const int64_t channels = in.dim(4), patch = v.taps() * channels;
    T* rows = n.scratch<T>(state.filter);
    TransposeMatrix(filter.data<const T>(), patch, filter.dim(4), rows);
    RowProduct<T> product{};
    product.b = rows;
    product.lda = product.ldb = product.k = patch;
    product.bias = n.has_in(2) ? n.in(2).data<const T>() : nullptr;
    product.ldc = product.n = filter.dim(4);
    product.m = v.w.small;
    product.activation = activation_;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      T* patches = n.scratch<T>(state.patches) + worker * patch * v.w.small;
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        RowProduct<T> one = product;
        CopyPatches(v, in.data<const T>(), channels, row, patches);
        one.a = patches;
        one.c = out.data<T>() + row * v.w.small * product.n;
        Multiply(one);
      }
    };
    const auto count = static_cast<size_t>(v.batch * v.d.small * v.h.small);
    if (thread_count(n.host()) > state.workers) return run(0, count, 0);
    ParallelFor(n.host(), count, Grain(v.w.small * patch * product.n), run);
  }

  // The input under each pixel of one result row, with zeros for padding.
  template <class T>
  static void CopyPatches(const Volume& v, const T* input, int64_t channels, int64_t row, T* patches) {
    const int64_t y0 = row % v.h.small * v.h.stride - v.h.before;
    const int64_t z0 = row / v.h.small % v.d.small * v.d.stride - v.d.before;
    const T* image = input + row / v.h.small / v.d.small * v.d.large * v.h.large * v.w.large * channels;
    for (int64_t ox = 0; ox < v.w.small; ++ox) {
      const int64_t x0 = ox * v.w.stride - v.w.before;
      for (int64_t kz = 0; kz < v.d.taps; ++kz) {
        for (int64_t ky = 0; ky < v.h.taps; ++ky) {
          const int64_t z = z0 + kz * v.d.dilation, y = y0 + ky * v.h.dilation;
          const bool inside = z >= 0 && z < v.d.large && y >= 0 && y < v.h.large;
          for (int64_t kx = 0; kx < v.w.taps; ++kx, patches += channels) {
            const int64_t x = x0 + kx * v.w.dilation;
            if (!inside || x < 0 || x >= v.w.large) std::fill_n(patches, channels, T(0));
            else std::copy_n(image + ((z * v.h.large + y) * v.w.large + x) * channels, channels, patches);
          }
        }
      }
    }
  }

  VolumeOptions options_;
  Activation activation_;
};

// Operands: output shape, filter [depth, height, width, out, in], input, bias. Input voxel x adds its filter
// taps k to the output voxels x * stride - padding + k * dilation.
struct Conv3DTranspose {
  static constexpr std::string_view builtin = "CONV_3D_TRANSPOSE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t workers, products;
  };

  explicit Conv3DTranspose(const Node& n) : options_(n), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    for (uint32_t i = 1; i < 4; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 2);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 4);
    RequireRank(n, 0, 1);
    CheckFilter(n, 2);
    RequireRank(n, 2, 5);
    const VolumeOptions options(n);
    const Tensor filter = n.in(1), in = n.in(2);
    SameDim(DimOrUnknown(filter, 4), DimOrUnknown(in, 4), "channels of the filter and of the input");
    if (n.has_in(3)) SameDtype(n, 2, 3);
    if (n.has_in(3) && n.in(3).is_static())
      SameDim(Count(n.in(3)), DimOrUnknown(filter, 3), "the bias and the filters");
    if (!n.in(0).has_value()) {
      out.needs_value(0);
      return out.set(0, in.dtype(), {DimOrUnknown(in, 0), -1, -1, -1, DimOrUnknown(filter, 3)});
    }
    const Shape shape = IntList(n.in(0), 0);
    if (shape.rank() != 5 || !shape.is_static()) Fail("an output shape of " + Text(shape), Operand(0));
    SameDim(shape[0], DimOrUnknown(in, 0), "batch of the output shape and of the input");
    SameDim(shape[4], DimOrUnknown(filter, 3), "channels of the output shape and of the filter");
    out.set(0, in.dtype(), shape);
  }

  State prepare(const Node& n, Plan& plan) const {
    const uint32_t workers = std::max(1u, plan.threads());
    const int64_t bytes = n.in(2).dtype() == FBX_F64 ? 8 : 4;
    const int64_t row = Product(Product(n.in(2).dim(3), n.in(1).dim(3)), Product(bytes, workers));
    return {workers, plan.scratch(static_cast<size_t>(row))};
  }

  void invoke(const Node& n, const State& state) const {
    Dispatch(kFloats, n.in(2).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  template <class T>
  void Run(const Node& n, const State& state) const {
    const Volume v(n.out(0), n.in(2), n.in(1), options_);
    const int64_t channels = n.out(0).dim(4), scratch = v.w.small * channels;
    const T* bias = n.has_in(3) ? n.in(3).data<const T>() : nullptr;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        T* out = n.out(0).data<T>() + row * v.w.large * channels;
        SumRow(n, v, row, n.scratch<T>(state.products) + worker * scratch, out);
        for (int64_t x = 0; x < v.w.large; ++x, out += channels) {
          for (int64_t c = 0; bias && c < channels; ++c) out[c] += bias[c];
          Activate(activation_, out, static_cast<size_t>(channels));
        }
      }
    };
    const auto rows = static_cast<size_t>(v.batch * v.d.large * v.h.large);
    if (thread_count(n.host()) > state.workers) return run(0, rows, 0);
    ParallelFor(n.host(), rows, Grain(scratch * n.in(2).dim(4) * v.w.taps), run);
  }

  // The input position that contributes to output position `at` through tap `k`; -1: none.
  static int64_t Source(const Axis3& a, int64_t at, int64_t k) {
    const int64_t reach = at + a.before - k * a.dilation;
    return reach < 0 || reach % a.stride != 0 || reach / a.stride >= a.small ? -1 : reach / a.stride;
  }

  template <class T>
  static void SumRow(const Node& n, const Volume& v, int64_t row, T* products, T* out) {
    const int64_t oy = row % v.h.large, oz = row / v.h.large % v.d.large, image = row / v.h.large / v.d.large;
    const int64_t in_channels = n.in(2).dim(4), channels = n.out(0).dim(4);
    std::fill_n(out, v.w.large * channels, T(0));
    for (int64_t kz = 0; kz < v.d.taps; ++kz) {
      for (int64_t ky = 0; ky < v.h.taps; ++ky) {
        const int64_t z = Source(v.d, oz, kz), y = Source(v.h, oy, ky);
        if (z < 0 || y < 0) continue;
        const T* in =
            n.in(2).data<const T>() + ((image * v.d.small + z) * v.h.small + y) * v.w.small * in_channels;
        const T* taps = n.in(1).data<const T>() + (kz * v.h.taps + ky) * v.w.taps * channels * in_channels;
        for (int64_t kx = 0; kx < v.w.taps; ++kx, taps += channels * in_channels)
          AddTap(v.w,
                 RowProduct<T>{in, in_channels, taps, in_channels, nullptr, products, channels, v.w.small,
                               channels, in_channels},
                 kx, out);
      }
    }
  }

  template <class T>
  static void AddTap(const Axis3& w, const RowProduct<T>& product, int64_t kx, T* out) {
    Multiply(product);
    for (int64_t x = 0; x < w.small; ++x) {
      const int64_t at = x * w.stride - w.before + kx * w.dilation;
      if (at < 0 || at >= w.large) continue;
      for (int64_t c = 0; c < product.n; ++c) out[at * product.n + c] += product.c[x * product.n + c];
    }
  }

  VolumeOptions options_;
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Conv3D>, &kernel_of<Conv3DTranspose>};

}  // namespace

constinit const KernelTable kConv3dKernels = kTable;

}  // namespace fusebox::cpu
