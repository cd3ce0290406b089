// SPDX-License-Identifier: Apache-2.0
// CONV_2D as a matrix product: a row of `a` is the patch of the input under one output pixel.
#include <algorithm>

#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/gemm.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/window.h"

namespace fusebox::cpu {
namespace {

struct Geometry {
  int64_t batch, in_height, in_width, in_channels;
  int64_t filter_height, filter_width, group_channels;
  int64_t out_height, out_width, out_channels;
  int64_t pad_top, pad_left;
  Slide height, width;

  Geometry(const Node& n, const WindowOptions& w)
      : batch(n.in(0).dim(0)),
        in_height(n.in(0).dim(1)),
        in_width(n.in(0).dim(2)),
        in_channels(n.in(0).dim(3)),
        filter_height(n.in(1).dim(1)),
        filter_width(n.in(1).dim(2)),
        group_channels(n.in(1).dim(3)),
        out_height(OutputSize(in_height, filter_height, w.height, w.same)),
        out_width(OutputSize(in_width, filter_width, w.width, w.same)),
        out_channels(n.in(1).dim(0)),
        pad_top(PaddingBefore(in_height, filter_height, w.height, w.same)),
        pad_left(PaddingBefore(in_width, filter_width, w.width, w.same)),
        height(w.height),
        width(w.width) {}

  int64_t groups() const { return in_channels / group_channels; }
  int64_t patch() const { return filter_height * filter_width * group_channels; }
  int64_t pixels() const { return batch * out_height * out_width; }
  bool patches_are_pixels() const {
    return filter_height == 1 && filter_width == 1 && height.stride == 1 && width.stride == 1 &&
           groups() == 1;
  }
};

// Copies the patches of pixels [first, first + count) for one group; what lies in the padding is zero.
template <class T>
void CopyPatches(const Geometry& g, const T* input, int64_t group, int64_t first, int64_t count, T* patches) {
  const int64_t channels = g.group_channels, row = g.filter_width * channels;
  const bool contiguous = g.width.dilation == 1 && channels == g.in_channels;
  for (int64_t pixel = first; pixel < first + count; ++pixel) {
    const int64_t ox = pixel % g.out_width, oy = pixel / g.out_width % g.out_height;
    const int64_t image = pixel / g.out_width / g.out_height * g.in_height;
    const int64_t x0 = ox * g.width.stride - g.pad_left, y0 = oy * g.height.stride - g.pad_top;
    const TapRange inside = InsideTaps(x0, g.filter_width, g.width.dilation, g.in_width);
    for (int64_t ky = 0; ky < g.filter_height; ++ky, patches += row) {
      const int64_t y = y0 + ky * g.height.dilation;
      if (y < 0 || y >= g.in_height || inside.first == inside.last) {
        std::fill_n(patches, row, T(0));
        continue;
      }
      const T* source = input + ((image + y) * g.in_width + x0) * g.in_channels + group * channels;
      std::fill_n(patches, inside.first * channels, T(0));
      if (contiguous) {
        std::copy(source + inside.first * channels, source + inside.last * channels,
                  patches + inside.first * channels);
      } else {
        for (int64_t kx = inside.first; kx < inside.last; ++kx)
          std::copy_n(source + kx * g.width.dilation * g.in_channels, channels, patches + kx * channels);
      }
      std::fill(patches + inside.last * channels, patches + row, T(0));
    }
  }
}

struct Conv2D {
  static constexpr std::string_view builtin = "CONV_2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    int64_t chunk = 0;     // output pixels whose patches are made at a time
    uint32_t workers = 0;  // threads for which there is scratch
    uint32_t slot = 0;
  };

  explicit Conv2D(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    SameDtype(n, 0, 1);
    RequireRank(n, 0, 4);
    RequireRank(n, 1, 4);
    const WindowOptions w = ReadWindowOptions(n);
    const Tensor in = n.in(0), filter = n.in(1);
    const int64_t channels = DimOrUnknown(in, 3), group = DimOrUnknown(filter, 3),
                  outs = DimOrUnknown(filter, 0);
    for (int i = 1; i < 4; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    if (channels >= 0 && group >= 0) {
      if (channels == 0 || channels % group != 0)
        Fail("an input of " + std::to_string(channels) + " channels for a filter of " + std::to_string(group),
             Operand(1));
      if (outs >= 0 && outs % (channels / group) != 0)
        Fail(std::to_string(outs) + " filters do not divide into " + std::to_string(channels / group) +
                 " groups",
             Operand(1));
    }
    CheckBias(n, 2, outs);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), OutputSize(DimOrUnknown(in, 1), DimOrUnknown(filter, 1), w.height, w.same),
             OutputSize(DimOrUnknown(in, 2), DimOrUnknown(filter, 2), w.width, w.same), outs});
  }

  State prepare(const Node& n, Plan& plan) const {
    const Geometry g(n, window_);
    if (g.patches_are_pixels()) return {};
    const int64_t bytes = Product(Product(g.patch(), 1), n.in(0).dtype() == FBX_F64 ? 8 : 4);
    constexpr int64_t kCacheBytes = 96 * 1024;
    State state;
    state.workers = std::max(1u, plan.threads());
    state.chunk = std::clamp<int64_t>(kCacheBytes / bytes / 4 * 4, 4, std::max<int64_t>(4, g.pixels()));
    state.slot = plan.scratch(static_cast<size_t>(Product(Product(state.chunk, bytes), state.workers)));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  template <class T>
  void Run(const Node& n, const State& state) const {
    const Geometry g(n, window_);
    RowProduct<T> product{};
    product.b = n.in(1).data<const T>();
    product.lda = product.ldb = product.k = g.patch();
    product.bias = n.has_in(2) ? n.in(2).data<const T>() : nullptr;
    product.c = n.out(0).data<T>();
    product.ldc = g.out_channels;
    product.activation = activation_;
    if (g.pixels() == 0 || g.out_channels == 0) return;
    if (g.patches_are_pixels()) {
      product.a = n.in(0).data<const T>();
      product.m = g.pixels();
      product.n = g.out_channels;
      return MultiplyParallel(n.host(), product);
    }
    product.n = g.out_channels / g.groups();
    const int64_t chunks = (g.pixels() + state.chunk - 1) / state.chunk;
    T* scratch = n.scratch<T>(state.slot);
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      T* patches = scratch + worker * state.chunk * g.patch();
      for (int64_t chunk = static_cast<int64_t>(begin); chunk < static_cast<int64_t>(end); ++chunk)
        RunChunk(g, product, n.in(0).data<const T>(), chunk * state.chunk, state.chunk, patches);
    };
    if (thread_count(n.host()) > state.workers) return run(0, static_cast<size_t>(chunks), 0);
    parallel_for(n.host(), static_cast<size_t>(chunks), 1, run);
  }

  template <class T>
  static void RunChunk(const Geometry& g, RowProduct<T> product, const T* input, int64_t first, int64_t chunk,
                       T* patches) {
    product.a = patches;
    product.m = std::min(chunk, g.pixels() - first);
    product.c += first * g.out_channels;
    for (int64_t group = 0; group < g.groups(); ++group) {
      CopyPatches(g, input, group, first, product.m, patches);
      Multiply(product);
      product.b += product.n * g.patch();
      product.c += product.n;
      if (product.bias) product.bias += product.n;
    }
  }

  WindowOptions window_;
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Conv2D>};

}  // namespace

constinit const KernelTable kConvKernels = kTable;

}  // namespace fusebox::cpu
