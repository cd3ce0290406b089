// SPDX-License-Identifier: Apache-2.0
// CONV_3D_TRANSPOSE over volumes [batch, depth, height, width, channels].
#include <algorithm>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/windows/patches.h"

namespace fusebox::cpu {
namespace {

// The axes of the convolution whose gradient this is: from the result to the input.
struct Volume {
  ConvAxis d, h, w;

  Volume(const Node& n, const WindowOptions& o)
      : d(AxisOf(n, 1, DepthSlide(n), o.same)),
        h(AxisOf(n, 2, o.height, o.same)),
        w(AxisOf(n, 3, o.width, o.same)) {}

 private:
  static ConvAxis AxisOf(const Node& n, int dim, const Slide& slide, bool same) {
    const int64_t in = n.out(0).dim(dim);
    const int64_t taps = n.in(1).dim(dim - 1);
    return {in, taps, n.in(2).dim(dim), PaddingBefore(in, taps, slide, same), slide};
  }
};

// Operands: output shape, filter [depth, height, width, out, in], input, bias. Input voxel x adds its filter
// taps k to the output voxels x * stride - padding + k * dilation.
struct Conv3DTranspose {
  static constexpr std::string_view builtin = "CONV_3D_TRANSPOSE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t workers, products;
  };

  explicit Conv3DTranspose(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    for (uint32_t i = 1; i < 4; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 2);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 4);
    RequireRank(n, 0, 1);
    RequireRank(n, 1, 5);
    RequireRank(n, 2, 5);
    for (int i = 0; i < 5; ++i)
      if (DimOrUnknown(n.in(1), i) == 0) Fail("an empty filter " + Text(n.in(1).dims()), Operand(1));
    SameDtype(n, 1, 2);
    ReadWindowOptions(n);
    DepthSlide(n);
    const Tensor filter = n.in(1);
    const Tensor in = n.in(2);
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
    const Volume v(n, window_);
    const int64_t channels = n.out(0).dim(4);
    const int64_t scratch = v.w.out * channels;
    const T* bias = n.has_in(3) ? n.in(3).data<const T>() : nullptr;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        T* out = n.out(0).data<T>() + row * v.w.in * channels;
        SumRow(n, v, row, n.scratch<T>(state.products) + worker * scratch, out);
        for (int64_t x = 0; x < v.w.in; ++x, out += channels) {
          for (int64_t c = 0; bias && c < channels; ++c) out[c] += bias[c];
          Activate(activation_, out, static_cast<size_t>(channels));
        }
      }
    };
    const auto rows = static_cast<size_t>(n.out(0).dim(0) * v.d.in * v.h.in);
    if (thread_count(n.host()) > state.workers) return run(0, rows, 0);
    ParallelFor(n.host(), rows, Grain(scratch * n.in(2).dim(4) * v.w.taps), run);
  }

  // The input position that contributes to output position `at` through tap `k`; -1: none.
  static int64_t Source(const ConvAxis& a, int64_t at, int64_t k) {
    const int64_t reach = at + a.before - k * a.slide.dilation;
    return reach < 0 || reach % a.slide.stride != 0 || reach / a.slide.stride >= a.out
               ? -1
               : reach / a.slide.stride;
  }

  template <class T>
  static void SumRow(const Node& n, const Volume& v, int64_t row, T* products, T* out) {
    const int64_t oy = row % v.h.in;
    const int64_t oz = row / v.h.in % v.d.in;
    const int64_t image = row / v.h.in / v.d.in;
    const int64_t in_channels = n.in(2).dim(4);
    const int64_t channels = n.out(0).dim(4);
    std::fill_n(out, v.w.in * channels, T(0));
    for (int64_t kz = 0; kz < v.d.taps; ++kz) {
      for (int64_t ky = 0; ky < v.h.taps; ++ky) {
        const int64_t z = Source(v.d, oz, kz);
        const int64_t y = Source(v.h, oy, ky);
        if (z < 0 || y < 0) continue;
        const T* in = n.in(2).data<const T>() + ((image * v.d.out + z) * v.h.out + y) * v.w.out * in_channels;
        const T* taps = n.in(1).data<const T>() + (kz * v.h.taps + ky) * v.w.taps * channels * in_channels;
        for (int64_t kx = 0; kx < v.w.taps; ++kx, taps += channels * in_channels)
          AddTap(v.w,
                 RowProduct<T>{in, in_channels, taps, in_channels, nullptr, products, channels, v.w.out,
                               channels, in_channels},
                 kx, out);
      }
    }
  }

  template <class T>
  static void AddTap(const ConvAxis& w, const RowProduct<T>& product, int64_t kx, T* out) {
    Multiply(product);
    for (int64_t x = 0; x < w.out; ++x) {
      const int64_t at = w.origin(x) + kx * w.slide.dilation;
      if (!w.holds(at)) continue;
      for (int64_t c = 0; c < product.n; ++c) out[at * product.n + c] += product.c[x * product.n + c];
    }
  }

  WindowOptions window_;
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Conv3DTranspose>};

}  // namespace

constinit const KernelTable kConv3dTransposeKernels = kTable;

}  // namespace fusebox::cpu
