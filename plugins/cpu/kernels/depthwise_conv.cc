// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/activation.h"
#include "plugins/cpu/depthwise.h"
#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized_product.h"
#include "plugins/cpu/simd.h"
#include "plugins/cpu/window.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{.channel_axis = 3, .exact_scales = true};
constexpr ProductOperands kPackedOperands{
    .channel_axis = 3, .transposed = true, .taps = true, .exact_scales = true, .packed = true};

const ProductOperands& OperandsOf(const Node& n) {
  return n.in(0).dtype() == FBX_I16 ? kOperands : kPackedOperands;
}

// Output channel c * multiplier + m applies filter m to input channel c.
struct DepthwiseConv2D {
  static constexpr std::string_view builtin = "DEPTHWISE_CONV_2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t workers = 0, sums = 0;
    uint32_t pointers = 0, pads = 0, repeated = 0;  // of taps
    BytePlan bytes;
    QuantizedProduct::State quantized;
  };

  explicit DepthwiseConv2D(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {
    if (!QuantizedProduct::Takes(n, kOperands)) return;
    quantized_ = QuantizedProduct(n, OperandsOf(n), activation_, true);
    const Tensor filter = n.in(1);
    quantized_.KeepPacked(filter.dim(3), filter.dim(1) * filter.dim(2));
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
    const int64_t channels = DimOrUnknown(in, 3), outs = DimOrUnknown(filter, 3);
    SameDim(DimOrUnknown(filter, 0), 1, "the first dim of the filter and 1");
    for (int i = 1; i < 3; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    if (channels >= 0 && outs >= 0 && (channels == 0 || outs % channels != 0))
      Fail(std::to_string(outs) + " filters for " + std::to_string(channels) + " channels", Operand(1));
    if (quantized) QuantizedProduct::Check(n, kOperands, outs);
    else CheckBias(n, 2, outs);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), OutputSize(DimOrUnknown(in, 1), DimOrUnknown(filter, 1), w.height, w.same),
             OutputSize(DimOrUnknown(in, 2), DimOrUnknown(filter, 2), w.width, w.same), outs});
  }

  State prepare(const Node& n, Plan& plan) const {
    State state;
    state.workers = std::max(1u, plan.threads());
    if (QuantizedProduct::Takes(n, kOperands)) {
      state.quantized = quantized_.Prepare(n, plan, n.in(0).dim(0));
      if (quantized_.packed()) {
        state.bytes = quantized_.PlanBytes(n, plan, ShapeOf(n), false);
        PlanTaps(n, plan, 1, state);
      }
      const int64_t pixels = quantized_.packed() && quantized_.hybrid() ? n.out(0).dim(2) : 1;
      state.sums = Slot(plan, Product(pixels, n.in(1).dim(3)), sizeof(int64_t), state);
    } else if (n.in(0).dtype() == FBX_F32) {
      state.repeated = SlotOfRepeated(n, plan, sizeof(float));
    }
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (QuantizedProduct::Takes(n, kOperands))
      return quantized_.packed() ? RunBytes(n, state) : RunWide(n, state);
    if (n.in(0).dtype() == FBX_F32) return RunFloats(n, state);
    Run<double>(n);
  }

 private:
  template <class T, class Total = T>
  struct Job {
    const T *input, *filter;
    const Total* bias;
    Total* output;
    int64_t in_height, in_width, in_channels, filter_height, filter_width, out_height, out_width,
        out_channels, multiplier;
    int64_t pad_top, pad_left;
  };

  template <class T, class Total>
  void Measure(const Node& n, Job<T, Total>& job) const {
    const Tensor in = n.in(0), filter = n.in(1);
    job.in_height = in.dim(1), job.in_width = in.dim(2), job.in_channels = in.dim(3);
    job.filter_height = filter.dim(1), job.filter_width = filter.dim(2), job.out_channels = filter.dim(3);
    job.out_height = OutputSize(job.in_height, job.filter_height, window_.height, window_.same);
    job.out_width = OutputSize(job.in_width, job.filter_width, window_.width, window_.same);
    job.multiplier = job.out_channels / job.in_channels;
    job.pad_top = PaddingBefore(job.in_height, job.filter_height, window_.height, window_.same);
    job.pad_left = PaddingBefore(job.in_width, job.filter_width, window_.width, window_.same);
  }

  // Calls f(row, worker) for all rows of output pixels.
  template <class J, class F>
  static void ForRows(const Node& n, const J& job, bool parallel, const F& f) {
    const int64_t rows = n.in(0).dim(0) * job.out_height;
    const int64_t work = job.out_width * job.out_channels * job.filter_height * job.filter_width;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) f(row, worker);
    };
    if (!parallel) return run(0, static_cast<size_t>(rows), 0);
    ParallelFor(n.host(), static_cast<size_t>(rows), Grain(work), run);
  }

  // Per worker.
  static uint32_t Slot(Plan& plan, int64_t count, int64_t bytes, const State& state) {
    return plan.scratch(static_cast<size_t>(Product(Product(count, bytes), state.workers)));
  }

  // Taps of a pixel, to a multiple of four.
  static int64_t Padded(int64_t taps) { return (taps + 3) / 4 * 4; }

  static void PlanTaps(const Node& n, Plan& plan, int64_t bytes, State& state) {
    const Tensor filter = n.in(1);
    const int64_t taps = Padded(Product(filter.dim(1), filter.dim(2)));
    state.pointers = Slot(plan, Product(n.out(0).dim(2), taps), sizeof(void*), state);
    state.pads = Slot(plan, filter.dim(3), bytes, state);
    state.repeated = SlotOfRepeated(n, plan, bytes);
  }

  static uint32_t SlotOfRepeated(const Node& n, Plan& plan, int64_t bytes) {
    const Tensor in = n.in(0);
    const int64_t channels = n.in(1).dim(3);
    if (channels == in.dim(3)) return 0;
    const int64_t pixels = Product(Product(in.dim(0), in.dim(1)), in.dim(2));
    return plan.scratch(static_cast<size_t>(Product(Product(pixels, channels), bytes)));
  }

  static ProductShape ShapeOf(const Node& n) {
    const Tensor filter = n.in(1);
    return {n.out(0).dim(0) * n.out(0).dim(1) * n.out(0).dim(2), filter.dim(3),
            filter.dim(1) * filter.dim(2)};
  }

  // With several filters per channel, each channel is repeated as many times.
  template <class T>
  static const T* Repeated(const Node& n, const State& state, int64_t multiplier, const T* input) {
    if (multiplier == 1) return input;
    T* const to = n.scratch<T>(state.repeated);
    ParallelFor(n.host(), static_cast<size_t>(n.in(0).count()), Grain(multiplier),
                [&](size_t begin, size_t end, uint32_t) {
                  for (size_t i = begin; i < end; ++i)
                    std::fill_n(to + i * static_cast<size_t>(multiplier), multiplier, input[i]);
                });
    return to;
  }

  // The input pixels under the taps of a row of output pixels, `each` to a pixel; `pad` where there is none.
  template <class T>
  void PointTaps(const Job<T>& j, int64_t row, const T* pad, int64_t each, const T** to) const {
    const int64_t image = row / j.out_height, y0 = row % j.out_height * window_.height.stride - j.pad_top;
    const int64_t taps = j.filter_height * j.filter_width;
    for (int64_t ox = 0; ox < j.out_width; ++ox, to += each) {
      const int64_t x0 = ox * window_.width.stride - j.pad_left;
      const TapRange xs = InsideTaps(x0, j.filter_width, window_.width.dilation, j.in_width);
      std::fill(to + taps, to + each, pad);
      for (int64_t ky = 0; ky < j.filter_height; ++ky) {
        const int64_t y = y0 + ky * window_.height.dilation;
        const T** const line = to + ky * j.filter_width;
        std::fill_n(line, j.filter_width, pad);
        if (y < 0 || y >= j.in_height) continue;
        const T* const first = j.input + (image * j.in_height + y) * j.in_width * j.out_channels;
        for (int64_t kx = xs.first; kx < xs.last; ++kx)
          line[kx] = first + (x0 + kx * window_.width.dilation) * j.out_channels;
      }
    }
  }

  // Calls run(row, taps, worker) for all rows of output pixels. pad(image): the value of padding.
  template <class T, class Pad, class Run>
  void ForTaps(const Node& n, const State& state, const Job<T>& job, int64_t each, const Pad& pad,
               const Run& run) const {
    const T** const pointers = n.scratch<const T*>(state.pointers);
    ForRows(n, job, thread_count(n.host()) <= state.workers, [&](int64_t row, uint32_t worker) {
      T* const pads = n.scratch<T>(state.pads) + worker * job.out_channels;
      const T** const taps = pointers + worker * job.out_width * each;
      std::fill_n(pads, job.out_channels, pad(row / job.out_height));
      PointTaps(job, row, pads, each, taps);
      run(row, taps, worker);
    });
  }

  void RunFloats(const Node& n, const State& state) const {
    Job<float> job{};
    Measure(n, job);
    if (n.out(0).count() == 0) return;
    job.input = Repeated(n, state, job.multiplier, n.in(0).data<const float>());
    job.filter = n.in(1).data<const float>();
    job.bias = n.has_in(2) ? n.in(2).data<const float>() : nullptr;
    job.output = n.out(0).data<float>();
    ForRows(n, job, true, [&](int64_t row, uint32_t) { RunFloatRow(job, row); });
  }

  // Pixels beside which there is no padding are one run, each of the others is one.
  void RunFloatRow(const Job<float>& j, int64_t row) const {
    const int64_t channels = j.out_channels, width = j.out_width * channels;
    const Slide &down = window_.height, &right = window_.width;
    const int64_t y0 = row % j.out_height * down.stride - j.pad_top;
    const TapRange ys = InsideTaps(y0, j.filter_height, down.dilation, j.in_height);
    const ActivationRange<float> range(activation_);
    DepthwiseRun run{.pixel_step = right.stride * channels,
                     .line_step = down.dilation * j.in_width * channels,
                     .tap_step = right.dilation * channels,
                     .lines = ys.last - ys.first,
                     .weights_step = j.filter_width * channels,
                     .bias = j.bias,
                     .channels = channels,
                     .lowest = range.lowest,
                     .highest = range.highest};
    const int64_t line = (row / j.out_height * j.in_height + y0 + ys.first * down.dilation) * j.in_width;
    const int64_t end =
        (j.in_width - Extent(j.filter_width, right) + j.pad_left + right.stride) / right.stride;
    for (int64_t ox = 0; ox < j.out_width; ox += run.pixels) {
      const int64_t x0 = ox * right.stride - j.pad_left;
      const TapRange xs = InsideTaps(x0, j.filter_width, right.dilation, j.in_width);
      run.taps = xs.last - xs.first;
      run.pixels = x0 >= 0 && ox < end ? std::min(end, j.out_width) - ox : 1;
      // Without a tap inside the image nothing is read.
      const bool reads = run.lines > 0 && run.taps > 0;
      run.input = reads ? j.input + (line + x0 + xs.first * right.dilation) * channels : j.input;
      run.weights = j.filter + (ys.first * j.filter_width + xs.first) * channels;
      run.out = j.output + row * width + ox * channels;
      Depthwise(run);
    }
    if (activation_ == Activation::kTanh)
      Activate(activation_, j.output + row * width, static_cast<size_t>(width));
  }

  void RunBytes(const Node& n, const State& state) const {
    Job<int8_t> job{};
    Measure(n, job);
    if (n.out(0).count() == 0) return;
    const ProductShape shape = ShapeOf(n);
    job.input = Repeated(n, state, job.multiplier, quantized_.Bytes(n, state.quantized, n.in(0).dim(0)));
    const std::byte* const packed = quantized_.Packed(n, state.quantized, state.bytes, shape);
    const auto run = [&](int64_t row, const int8_t* const* taps, uint32_t worker) {
      const int64_t width = job.out_width * job.out_channels;
      quantized_.RunTaps(n, {state.quantized, shape, packed, taps, job.out_width, row / job.out_height,
                             row * width, n.scratch<int32_t>(state.sums) + worker * width});
    };
    ForTaps(
        n, state, job, Padded(shape.depth),
        [&](int64_t image) { return quantized_.Pad(n, state.quantized, image); }, run);
  }

  template <class T>
  void Run(const Node& n) const {
    Job<T> job{};
    job.input = n.in(0).data<const T>();
    job.filter = n.in(1).data<const T>();
    job.bias = n.has_in(2) ? n.in(2).data<const T>() : nullptr;
    job.output = n.out(0).data<T>();
    Measure(n, job);
    ForRows(n, job, true,
            [&](int64_t row, uint32_t) { VectorizedFor<T>([&]() FUSEBOX_INLINE { RunRow(job, row); }); });
  }

  void RunWide(const Node& n, const State& state) const {
    Job<int16_t, int64_t> job{};
    job.input = quantized_.Input(n, state.quantized, n.in(0).dim(0));
    job.filter = quantized_.Weights(n, state.quantized);
    Measure(n, job);
    const bool parallel = thread_count(n.host()) <= state.workers;
    ForRows(n, job, parallel, [&](int64_t row, uint32_t worker) {
      int64_t* sums = n.scratch<int64_t>(state.sums) + worker * job.out_channels;
      for (int64_t ox = 0; ox < job.out_width; ++ox) {
        Vectorized([&]() FUSEBOX_INLINE { SumPixel(job, row, ox, sums); });
        quantized_.Finish(n, state.quantized, row / job.out_height, 0, job.out_channels, sums,
                          (row * job.out_width + ox) * job.out_channels);
      }
    });
  }

  // One row of output pixels. A pixel's channels are accumulated in place, tap by tap.
  template <class T>
  FUSEBOX_INLINE inline void RunRow(const Job<T>& j, int64_t row) const {
    for (int64_t ox = 0; ox < j.out_width; ++ox) {
      T* out = j.output + (row * j.out_width + ox) * j.out_channels;
      SumPixel(j, row, ox, out);
      if (j.bias) {
        for (int64_t c = 0; c < j.out_channels; ++c) out[c] += j.bias[c];
      }
      Activate(activation_, out, static_cast<size_t>(j.out_channels));
    }
  }

  template <class T, class Total>
  FUSEBOX_INLINE inline void SumPixel(const Job<T, Total>& j, int64_t row, int64_t ox, Total* out) const {
    const int64_t image = row / j.out_height, y0 = row % j.out_height * window_.height.stride - j.pad_top;
    const TapRange ys = InsideTaps(y0, j.filter_height, window_.height.dilation, j.in_height);
    std::fill_n(out, j.out_channels, Total(0));
    const int64_t x0 = ox * window_.width.stride - j.pad_left;
    const TapRange xs = InsideTaps(x0, j.filter_width, window_.width.dilation, j.in_width);
    for (int64_t ky = ys.first; ky < ys.last; ++ky) {
      const int64_t y = y0 + ky * window_.height.dilation;
      for (int64_t kx = xs.first; kx < xs.last; ++kx) {
        const int64_t x = x0 + kx * window_.width.dilation;
        AddTap(j, j.input + ((image * j.in_height + y) * j.in_width + x) * j.in_channels,
               j.filter + (ky * j.filter_width + kx) * j.out_channels, out);
      }
    }
  }

  template <class T, class Total>
  FUSEBOX_INLINE static inline void AddTap(const Job<T, Total>& j, const T* __restrict in,
                                           const T* __restrict filter, Total* __restrict out) {
    if (j.multiplier == 1) {
      for (int64_t c = 0; c < j.out_channels; ++c) out[c] += in[c] * filter[c];
      return;
    }
    for (int64_t c = 0; c < j.in_channels; ++c) {
      for (int64_t m = 0; m < j.multiplier; ++m)
        out[c * j.multiplier + m] += in[c] * filter[c * j.multiplier + m];
    }
  }

  WindowOptions window_;
  Activation activation_;
  QuantizedProduct quantized_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<DepthwiseConv2D>};

}  // namespace

constinit const KernelTable kDepthwiseConvKernels = kTable;

}  // namespace fusebox::cpu
