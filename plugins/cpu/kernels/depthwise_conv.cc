// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/quantized_bytes.h"
#include "plugins/cpu/products/quantized_words.h"
#include "plugins/cpu/windows/depthwise.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{.channel_axis = 3, .exact_scales = true};
constexpr ProductOperands kPackedOperands{
    .channel_axis = 3, .transposed = true, .taps = true, .exact_scales = true};

// Output channel c * multiplier + m applies filter m to input channel c.
struct DepthwiseConv2D {
  static constexpr std::string_view builtin = "DEPTHWISE_CONV_2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t workers = 0;
    uint32_t sums = 0;
    uint32_t lines = 0;
    uint32_t padded = 0;
    uint32_t repeated = 0;
    BytePlan bytes_plan;
    QuantizedBytes::State bytes;
    QuantizedWords::State words;
  };

  explicit DepthwiseConv2D(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {
    if (!TakesQuantized(n, kOperands)) return;
    if (n.in(0).dtype() == FBX_I16) {
      words_ = std::make_unique<QuantizedWords>(n, kOperands, activation_);
      return;
    }
    bytes_ = std::make_unique<QuantizedBytes>(n, kPackedOperands, activation_, true);
    const Tensor filter = n.in(1);
    if (!filter.is_const()) return;
    bytes_->KeepPacked(n, filter.dim(3), filter.dim(1) * filter.dim(2), LinesOf(n));
  }

  static void supports(const Node& n) {
    if (TakesQuantized(n, kOperands)) return SupportsQuantized(n, kOperands);
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    const bool quantized = TakesQuantized(n, kOperands);
    if (!quantized) SameDtype(n, 0, 1);
    RequireRank(n, 0, 4);
    RequireRank(n, 1, 4);
    const WindowOptions w = ReadWindowOptions(n);
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    const int64_t channels = DimOrUnknown(in, 3);
    const int64_t outs = DimOrUnknown(filter, 3);
    SameDim(DimOrUnknown(filter, 0), 1, "the first dim of the filter and 1");
    for (int i = 1; i < 3; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    if (channels >= 0 && outs >= 0 && (channels == 0 || outs % channels != 0))
      Fail(std::to_string(outs) + " filters for " + std::to_string(channels) + " channels", Operand(1));
    if (quantized) CheckQuantized(n, kOperands, outs);
    else CheckBias(n, 0, 2, outs);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), OutputSize(DimOrUnknown(in, 1), DimOrUnknown(filter, 1), w.height, w.same),
             OutputSize(DimOrUnknown(in, 2), DimOrUnknown(filter, 2), w.width, w.same), outs});
  }

  State prepare(const Node& n, Plan& plan) const {
    State state;
    state.workers = std::max(1u, plan.threads());
    if (bytes_) {
      state.bytes = bytes_->Prepare(n, plan, n.in(0).dim(0));
      state.bytes_plan = bytes_->PlanBytes(n, plan, ShapeOf(n), false);
      PlanLines(n, plan, state);
    } else if (words_) {
      state.words = words_->Prepare(n, plan);
      state.sums = Slot(plan, n.in(1).dim(3), sizeof(int64_t), state);
    } else if (n.in(0).dtype() == FBX_F32) {
      state.repeated = SlotOfRepeated(n, plan, sizeof(float));
    }
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (words_) return RunWords(n, state);
    if (bytes_) return RunBytes(n, state);
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
    Slide down, right;
  };

  // An image of one column is one row.
  template <class T, class Total>
  void Measure(const Node& n, Job<T, Total>& job) const {
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    job.in_height = in.dim(1);
    job.in_width = in.dim(2);
    job.in_channels = in.dim(3);
    job.filter_height = filter.dim(1);
    job.filter_width = filter.dim(2);
    job.out_channels = filter.dim(3);
    job.multiplier = job.out_channels / job.in_channels;
    job.down = window_.height;
    job.right = window_.width;
    if (IsColumn(n)) {
      std::swap(job.in_height, job.in_width);
      std::swap(job.filter_height, job.filter_width);
      std::swap(job.down, job.right);
    }
    job.out_height = OutputSize(job.in_height, job.filter_height, job.down, window_.same);
    job.out_width = OutputSize(job.in_width, job.filter_width, job.right, window_.same);
    job.pad_top = PaddingBefore(job.in_height, job.filter_height, job.down, window_.same);
    job.pad_left = PaddingBefore(job.in_width, job.filter_width, job.right, window_.same);
  }

  static bool IsColumn(const Node& n) { return DimOrUnknown(n.in(0), 2) == 1 && n.in(1).dim(2) == 1; }

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

  void PlanLines(const Node& n, Plan& plan, State& state) const {
    Job<int8_t> job{};
    Measure(n, job);
    state.lines = Slot(plan, job.filter_height, sizeof(void*), state);
    state.padded = Slot(plan, Product(job.filter_height, LineOf(job)), 1, state);
    state.repeated = SlotOfRepeated(n, plan, 1);
    if (bytes_->hybrid())
      state.sums = Slot(plan, Product(job.out_width, job.out_channels), sizeof(int32_t), state);
  }

  // Values that the windows of a row reach, padding included.
  static int64_t LineOf(const Job<int8_t>& j) {
    const int64_t steps = Product(std::max<int64_t>(j.out_width, 1) - 1, j.right.stride);
    return Product(steps + Extent(j.filter_width, j.right), j.out_channels);
  }

  static uint32_t SlotOfRepeated(const Node& n, Plan& plan, int64_t bytes) {
    const Tensor in = n.in(0);
    const int64_t channels = n.in(1).dim(3);
    if (channels == in.dim(3)) return 0;
    const int64_t pixels = Product(Product(in.dim(0), in.dim(1)), in.dim(2));
    return plan.scratch(static_cast<size_t>(Product(Product(pixels, channels), bytes)));
  }

  TapLines LinesOf(const Node& n) const {
    constexpr int64_t kMost = 4;
    const bool column = IsColumn(n);
    const Slide& along = column ? window_.height : window_.width;
    TapLines lines{.taps = n.in(1).dim(column ? 1 : 2)};
    if (along.stride % along.dilation != 0) return lines;
    lines.step = along.stride / along.dilation;
    lines.pixels = std::min((lines.padded() - lines.taps) / lines.step + 1, kMost);
    return lines;
  }

  ProductShape ShapeOf(const Node& n) const {
    const Tensor filter = n.in(1);
    return {n.out(0).dim(0) * n.out(0).dim(1) * n.out(0).dim(2), filter.dim(3), filter.dim(1) * filter.dim(2),
            1, LinesOf(n)};
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
    const int64_t channels = j.out_channels;
    const int64_t width = j.out_width * channels;
    const Slide& down = j.down;
    const Slide& right = j.right;
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
    const int8_t* const input =
        bytes_->Bytes(n, state.bytes, n.in(0).dim(0), n.in(0).data<const std::byte>());
    job.input = Repeated(n, state, job.multiplier, input);
    if (!state.bytes_plan.kept) bytes_->PackNow(n, state.bytes, state.bytes_plan, shape);
    const std::byte* const packed = bytes_->Packed(n, state.bytes_plan);
    const int64_t channels = job.out_channels;
    const int64_t width = job.out_width * channels;
    const int64_t line = LineOf(job);
    ForRows(n, job, thread_count(n.host()) <= state.workers, [&](int64_t row, uint32_t worker) {
      const int64_t image = row / job.out_height;
      const int8_t** const lines = n.scratch<const int8_t*>(state.lines) + worker * job.filter_height;
      int8_t* const padded = n.scratch<int8_t>(state.padded) + worker * job.filter_height * line;
      PointLines(job, row, bytes_->Pad(n, state.bytes, image), line, padded, lines);
      bytes_->RunTaps(n, {state.bytes, state.bytes_plan, shape, packed, lines, job.right.stride * channels,
                          job.right.dilation * channels, job.out_width, image, row * width,
                          bytes_->hybrid() ? n.scratch<int32_t>(state.sums) + worker * width : nullptr});
    });
  }

  // The lines of the windows of a row: of the image, or copied where windows reach beyond it.
  void PointLines(const Job<int8_t>& j, int64_t row, int8_t pad, int64_t line, int8_t* padded,
                  const int8_t** lines) const {
    const int64_t y0 = row % j.out_height * j.down.stride - j.pad_top;
    const int64_t width = j.in_width * j.out_channels;
    const int64_t before = j.pad_left * j.out_channels;
    for (int64_t ky = 0; ky < j.filter_height; ++ky, padded += line) {
      const int64_t y = y0 + ky * j.down.dilation;
      const bool inside = y >= 0 && y < j.in_height;
      const int8_t* const from = inside ? j.input + (row / j.out_height * j.in_height + y) * width : nullptr;
      lines[ky] = inside && line <= width && before == 0 ? from : padded;
      if (lines[ky] == from) continue;
      std::fill_n(padded, line, pad);
      if (inside) std::copy_n(from, std::min(width, line - before), padded + before);
    }
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

  void RunWords(const Node& n, const State& state) const {
    Job<int16_t, int64_t> job{};
    job.input = n.in(0).data<const int16_t>();
    words_->Start(n, state.words);
    job.filter = words_->Weights(n, state.words);
    Measure(n, job);
    const bool parallel = thread_count(n.host()) <= state.workers;
    ForRows(n, job, parallel, [&](int64_t row, uint32_t worker) {
      int64_t* sums = n.scratch<int64_t>(state.sums) + worker * job.out_channels;
      for (int64_t ox = 0; ox < job.out_width; ++ox) {
        Vectorized([&]() FUSEBOX_INLINE { SumPixel(job, row, ox, sums); });
        words_->Finish(n, 0, job.out_channels, sums, (row * job.out_width + ox) * job.out_channels);
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
    const int64_t image = row / j.out_height;
    const int64_t y0 = row % j.out_height * j.down.stride - j.pad_top;
    const TapRange ys = InsideTaps(y0, j.filter_height, j.down.dilation, j.in_height);
    std::fill_n(out, j.out_channels, Total(0));
    const int64_t x0 = ox * j.right.stride - j.pad_left;
    const TapRange xs = InsideTaps(x0, j.filter_width, j.right.dilation, j.in_width);
    for (int64_t ky = ys.first; ky < ys.last; ++ky) {
      const int64_t y = y0 + ky * j.down.dilation;
      for (int64_t kx = xs.first; kx < xs.last; ++kx) {
        const int64_t x = x0 + kx * j.right.dilation;
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
  // One of them, or none for floats.
  std::unique_ptr<QuantizedBytes> bytes_;
  std::unique_ptr<QuantizedWords> words_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<DepthwiseConv2D>};

}  // namespace

constinit const KernelTable kDepthwiseConvKernels = kTable;

}  // namespace fusebox::cpu
