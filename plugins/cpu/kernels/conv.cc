// SPDX-License-Identifier: Apache-2.0
// CONV_2D as a matrix product: a row of `a` is the input patch of one output pixel.
#include <algorithm>
#include <memory>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/products/panels.h"
#include "plugins/cpu/products/quantized_product.h"
#include "plugins/cpu/windows/patches.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{.exact_scales = true, .round_half_up = true, .packed = true};

struct Conv2D {
  static constexpr std::string_view builtin = "CONV_2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    int64_t chunk = 0;     // output pixels per patch buffer
    uint32_t workers = 0;  // number of scratch areas
    uint32_t slot = 0, lines = 0, panels = 0;
    ProductPlan product;
    BytePlan bytes;
    QuantizedProduct::State quantized;
  };

  // TFLite gives a hybrid input a zero point if the weights have per-channel scales.
  explicit Conv2D(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {
    if (!QuantizedProduct::Takes(n, kOperands)) {
      const int64_t channels = DimOrUnknown(n.in(0), 3);
      if (!n.in(1).is_const() || n.in(1).dtype() != FBX_F32 || channels < 1) return;
      const int64_t groups = std::max<int64_t>(1, channels / n.in(1).dim(3));
      const int64_t columns = n.in(1).dim(0) / groups, patch = CountFrom(Shape(n.in(1)), 1);
      if (columns > 1) panels_ = std::make_unique<KeptPanels>(n, 1, PanelShape{columns, patch, groups});
      return;
    }
    quantized_ = QuantizedProduct(n, kOperands, activation_, n.in(1).quant()->count > 1);
    const Tensor in = n.in(0), filter = n.in(1);
    if (!filter.is_const() || DimOrUnknown(in, 3) < 1) return;
    const int64_t groups = std::max<int64_t>(1, in.dim(3) / filter.dim(3));
    quantized_.KeepPacked(n, filter.dim(0) / groups, filter.dim(1) * filter.dim(2) * filter.dim(3));
  }

  static void supports(const Node& n) {
    if (QuantizedProduct::Takes(n, kOperands)) return QuantizedProduct::Supports(n, kOperands);
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    const bool quantized = QuantizedProduct::Takes(n, kOperands);
    if (!quantized) SameDtype(n, 0, 1);
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
    if (quantized) QuantizedProduct::Check(n, kOperands, outs);
    else CheckBias(n, 2, outs);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), OutputSize(DimOrUnknown(in, 1), DimOrUnknown(filter, 1), w.height, w.same),
             OutputSize(DimOrUnknown(in, 2), DimOrUnknown(filter, 2), w.width, w.same), outs});
  }

  State prepare(const Node& n, Plan& plan) const {
    const ConvGeometry g(n, window_);
    if (QuantizedProduct::Takes(n, kOperands)) {
      State state;
      state.quantized = quantized_.Prepare(n, plan, g.batch);
      const bool copied = !g.patches_are_pixels();
      if (quantized_.packed()) state.bytes = quantized_.PlanBytes(n, plan, ShapeOf(g), copied);
      else state.product = quantized_.PlanSums(plan, ShapeOf(g), copied);
      return state;
    }
    const bool panels = UsesPanels(n, g);
    if (g.patches_are_pixels() && !panels) return {};
    const int64_t bytes = Product(Product(g.patch(), 1), n.in(0).dtype() == FBX_F64 ? 8 : 4);
    State state;
    state.workers = std::max(1u, plan.threads());
    state.chunk =
        std::clamp<int64_t>(math::kPatchesBytes / bytes / 4 * 4, 4, std::max<int64_t>(4, g.pixels()));
    if (panels) state.chunk = std::max<int64_t>(state.chunk, 32);
    state.chunk = std::min(state.chunk, std::max<int64_t>(1, g.pixels()));
    state.slot = plan.scratch(static_cast<size_t>(Product(Product(state.chunk, bytes), state.workers)));
    if (!panels) return state;
    if (!KeepsPanels(g))
      state.panels = plan.scratch(static_cast<size_t>(Product(PanelsOf(g).elements(), sizeof(float))));
    const int64_t lines = Product(Product(state.chunk, g.filter_height), state.workers);
    state.lines = plan.scratch(static_cast<size_t>(Product(lines, sizeof(float*))));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (QuantizedProduct::Takes(n, kOperands))
      return quantized_.packed() ? RunBytes(n, state) : RunWide(n, state);
    if (UsesPanels(n, ConvGeometry(n, window_))) return RunPanels(n, state);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  // An input that got other channels has other groups.
  bool KeepsPanels(const ConvGeometry& g) const {
    return panels_ && panels_->shape().columns == g.out_channels / g.groups();
  }

  // Computed weights are packed by each invoke, which pays for itself with some pixels.
  bool UsesPanels(const Node& n, const ConvGeometry& g) const {
    constexpr int64_t kLeastPixels = 32;
    const bool one = g.out_channels == g.groups();  // which would be most of a panel's work for nothing
    return n.in(1).dtype() == FBX_F32 && !one && (KeepsPanels(g) || g.pixels() >= kLeastPixels);
  }

  static PanelShape PanelsOf(const ConvGeometry& g) {
    return {g.out_channels / g.groups(), g.patch(), g.groups()};
  }

  const float* PackedPanels(const Node& n, const State& state, const ConvGeometry& g) const {
    if (KeepsPanels(g)) return panels_->Get(n);
    auto* const to = n.scratch<float>(state.panels);
    PackPanels(n.in(1).data<const float>(), PanelsOf(g), to);
    return to;
  }

  void RunPanels(const Node& n, const State& state) const {
    const ConvGeometry g(n, window_);
    if (g.pixels() == 0 || g.out_channels == 0) return;
    const ActivationRange<float> range(activation_);
    const int64_t columns = g.out_channels / g.groups();
    const float* const panels = PackedPanels(n, state, g);
    const math::F32Layout layout = PanelLayout(columns, g.patch());
    const float* const bias = n.has_in(2) ? n.in(2).data<const float>() : nullptr;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      float* const patches = n.scratch<float>(state.slot) + worker * state.chunk * g.patch();
      const float** const lines =
          n.scratch<const float*>(state.lines) + worker * state.chunk * g.filter_height;
      for (int64_t chunk = static_cast<int64_t>(begin); chunk < static_cast<int64_t>(end); ++chunk) {
        const int64_t first = chunk * state.chunk, count = std::min(state.chunk, g.pixels() - first);
        float* const out = n.out(0).data<float>() + first * g.out_channels;
        for (int64_t group = 0; group < g.groups(); ++group) {
          PointPatches(g, n.in(0).data<const float>(), group, first, count, patches, lines);
          const int64_t channel = group * columns;
          math::BestF32Code().multiply({.rows = lines,
                                        .m = static_cast<size_t>(count),
                                        .segments = static_cast<size_t>(g.filter_height),
                                        .segment = static_cast<size_t>(g.filter_width * g.group_channels),
                                        .layout = layout,
                                        .weights = panels + group * PanelElements(columns, g.patch()),
                                        .start = bias ? bias + channel : nullptr,
                                        .c = out + channel,
                                        .ldc = static_cast<size_t>(g.out_channels),
                                        .low = range.lowest,
                                        .high = range.highest},
                                       0, layout.groups());
        }
        if (activation_ == Activation::kTanh)
          Activate(activation_, out, static_cast<size_t>(count * g.out_channels));
      }
    };
    const auto chunks = static_cast<size_t>((g.pixels() + state.chunk - 1) / state.chunk);
    if (thread_count(n.host()) > state.workers) return run(0, chunks, 0);
    ParallelFor(n.host(), chunks, 1, run);
  }

  template <class T>
  void Run(const Node& n, const State& state) const {
    const ConvGeometry g(n, window_);
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
    ParallelFor(n.host(), static_cast<size_t>(chunks), 1, run);
  }

  template <class T>
  static void RunChunk(const ConvGeometry& g, RowProduct<T> product, const T* input, int64_t first,
                       int64_t chunk, T* patches) {
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

  static ProductShape ShapeOf(const ConvGeometry& g) {
    return {g.pixels(), g.out_channels / g.groups(), g.patch(), g.groups()};
  }

  void RunBytes(const Node& n, const State& state) const {
    const ConvGeometry g(n, window_);
    const ProductShape shape = ShapeOf(g);
    const int8_t* input = quantized_.Bytes(n, state.quantized, g.batch);
    if (g.patches_are_pixels() && quantized_.RunFirstRow(n, state.quantized, input, shape)) return;
    const auto pad = [&](int64_t image) { return quantized_.Pad(n, state.quantized, image); };
    quantized_.RunBytes(
        n,
        {state.quantized, state.bytes, shape, quantized_.Packed(n, state.quantized, state.bytes, shape), 0,
         std::max<int64_t>(1, g.out_height * g.out_width), 0},
        [&](int64_t group, int64_t first, int64_t count, int8_t* patches) {
          if (g.patches_are_pixels()) return ByteProductRows{input + first * g.patch(), g.patch()};
          CopyPatches(g, input, group, first, count, patches, pad);
          return ByteProductRows{patches, g.patch()};
        });
  }

  void RunWide(const Node& n, const State& state) const {
    const ConvGeometry g(n, window_);
    const int16_t* input = quantized_.Input(n, state.quantized, g.batch);
    RunProduct<int64_t>(
        n, state.product, ShapeOf(g), quantized_.Weights(n, state.quantized),
        [&](int64_t group, int64_t first, int64_t count, int16_t* patches) {
          if (g.patches_are_pixels()) return ProductRows{input + first * g.patch(), g.patch()};
          CopyPatches(g, input, group, first, count, patches);
          return ProductRows{patches, g.patch()};
        },
        [&](int64_t first, int64_t count, int64_t channel, int64_t columns, const int64_t* sums) {
          for (int64_t pixel = first; pixel < first + count; ++pixel, sums += columns)
            quantized_.Finish(n, state.quantized, 0, channel, columns, sums,
                              pixel * g.out_channels + channel);
        });
  }

  WindowOptions window_;
  Activation activation_;
  QuantizedProduct quantized_;
  std::unique_ptr<KeptPanels> panels_;  // of f32, if the weights are constant
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Conv2D>};

}  // namespace

constinit const KernelTable kConvKernels = kTable;

}  // namespace fusebox::cpu
