// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/products/panels.h"
#include "plugins/cpu/products/quantized_bytes.h"
#include "plugins/cpu/products/quantized_words.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{
    .input = 2, .weights = 1, .bias = 3, .by_tap = true, .exact_scales = true, .two_roundings = true};

// The gradient of a convolution from `output` to `input`. Operands: output shape, filter [out, height, width,
// in], input, bias. Input pixel x adds its filter taps k to the output pixels x * stride - padding + k: the
// products of some pixels with all taps are one matrix product, whose results are added in place.
struct TransposeConv {
  static constexpr std::string_view builtin = "TRANSPOSE_CONV";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    int64_t chunk = 0;   // input pixels of a product
    int64_t rows = 0;    // result rows of a task
    int64_t stride = 0;  // elements from the products of a pixel to the next pixel's
    uint32_t workers = 0;
    uint32_t products = 0;
    uint32_t totals = 0;
    uint32_t filter = 0;
    uint32_t panels = 0;
    BytePlan bytes_plan;
    QuantizedBytes::State bytes;
    QuantizedWords::State words;
  };

  explicit TransposeConv(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {
    const Tensor filter = n.in(1);
    if (TakesQuantized(n, kOperands)) {
      if (n.in(2).dtype() == FBX_I16) {
        words_ = std::make_unique<QuantizedWords>(n, kOperands, activation_);
        return;
      }
      bytes_ = std::make_unique<QuantizedBytes>(n, kOperands, activation_, true);
      if (filter.is_const())
        bytes_->KeepPacked(n, filter.dim(0) * filter.dim(1) * filter.dim(2), filter.dim(3));
    } else if (filter.is_const() && filter.dtype() == FBX_F32) {
      const int64_t taps = filter.dim(1) * filter.dim(2);
      panels_ = std::make_unique<KeptPanels>(n, 1, PanelShape{taps * filter.dim(0), filter.dim(3), 1, taps});
    }
  }

  static void supports(const Node& n) {
    if (TakesQuantized(n, kOperands)) return SupportsQuantized(n, kOperands);
    for (uint32_t i = 1; i < 4; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 1);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 4);
    const bool quantized = TakesQuantized(n, kOperands);
    if (!quantized) SameDtype(n, 1, 2);
    RequireRank(n, 0, 1);
    RequireRank(n, 1, 4);
    RequireRank(n, 2, 4);
    ReadWindowOptions(n);
    const Tensor filter = n.in(1);
    const Tensor in = n.in(2);
    for (int i = 1; i < 3; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    SameDim(DimOrUnknown(filter, 3), DimOrUnknown(in, 3), "channels of the filter and of the input");
    if (n.has_in(3) && !quantized) SameDtype(n, 2, 3);
    if (n.has_in(3) && n.in(3).is_static())
      SameDim(Count(n.in(3)), DimOrUnknown(filter, 0), "the bias and the filters");
    if (!n.in(0).has_value()) {
      out.needs_value(0);
      return out.set(0, in.dtype(), {DimOrUnknown(in, 0), -1, -1, DimOrUnknown(filter, 0)});
    }
    const Shape shape = IntList(n.in(0), 0);
    if (shape.rank() != 4 || !shape.is_static()) Fail("an output shape of " + Text(shape), Operand(0));
    SameDim(shape[0], DimOrUnknown(in, 0), "batch of the output shape and of the input");
    SameDim(shape[3], DimOrUnknown(filter, 0), "channels of the output shape and of the filter");
    out.set(0, in.dtype(), shape);
  }

  State prepare(const Node& n, Plan& plan) const {
    constexpr int64_t kLeast = 12;
    constexpr int64_t kMost = 96;
    const Geometry g(n, window_);
    const int64_t width = n.in(2).dtype() == FBX_F64 || n.in(2).dtype() == FBX_I16 ? 8 : 4;
    const auto scratch = [&](int64_t elements, int64_t bytes) {
      return plan.scratch(static_cast<size_t>(Product(elements, bytes)));
    };
    State state;
    state.workers = std::max(1u, plan.threads());
    state.rows = (g.out_height + state.workers - 1) / state.workers;
    state.stride = g.columns();
    if (words_) state.words = words_->Prepare(n, plan);
    if (bytes_) {
      state.bytes = bytes_->Prepare(n, plan, g.batch);
      const int64_t padded = static_cast<int64_t>(SumsWidth());
      state.stride = (state.stride + padded - 1) / padded * padded;
    }
    state.chunk =
        std::clamp(math::kSumsBytes / Product(width, std::max<int64_t>(1, state.stride)), kLeast, kMost);
    if (bytes_) {
      state.bytes_plan = bytes_->PlanBytes(n, plan, g.shape(), false);
      state.chunk = std::min(state.chunk, state.bytes_plan.chunk);
    }
    const int64_t workers = state.workers;
    state.products = scratch(Product(workers, Product(state.chunk, state.stride)), width);
    if (words_ || bytes_) {
      state.totals = scratch(Product(workers, Product(state.rows, g.out_row())), width);
    } else if (n.in(2).dtype() == FBX_F64) {
      state.filter = scratch(Product(g.columns(), g.in_channels), width);
    } else {
      if (!panels_) {
        state.filter = scratch(Product(g.columns(), g.in_channels), width);
        state.panels = scratch(PanelElements(g.columns(), g.in_channels), width);
      }
    }
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (n.out(0).count() == 0) return;
    if (words_) return RunWords(n, state);
    if (bytes_) return RunBytes(n, state);
    if (n.in(2).dtype() == FBX_F64) return RunDoubles(n, state);
    RunFloats(n, state);
  }

 private:
  struct Geometry {
    int64_t batch, in_height, in_width, in_channels, filter_height, filter_width, out_height, out_width,
        out_channels, pad_top, pad_left;

    Geometry(const Node& n, const WindowOptions& w)
        : batch(n.in(2).dim(0)),
          in_height(n.in(2).dim(1)),
          in_width(n.in(2).dim(2)),
          in_channels(n.in(2).dim(3)),
          filter_height(n.in(1).dim(1)),
          filter_width(n.in(1).dim(2)),
          out_height(n.out(0).dim(1)),
          out_width(n.out(0).dim(2)),
          out_channels(n.out(0).dim(3)),
          pad_top(PaddingBefore(out_height, filter_height, w.height, w.same)),
          pad_left(PaddingBefore(out_width, filter_width, w.width, w.same)) {}

    int64_t columns() const { return Product(Product(filter_height, filter_width), out_channels); }
    int64_t pixels() const { return in_height * in_width; }
    int64_t out_row() const { return Product(out_width, out_channels); }
    ProductShape shape() const { return {batch * pixels(), columns(), in_channels}; }
  };

  // A task's rows of the result.
  struct Rows {
    int64_t image, first, count;
    uint32_t worker;
  };

  // Calls f(Rows) for all rows.
  template <class F>
  static void ForRows(const Node& n, const State& state, const Geometry& g, const F& f) {
    const int64_t blocks = (g.out_height + state.rows - 1) / state.rows;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
        const int64_t first = task % blocks * state.rows;
        f(Rows{task / blocks, first, std::min(state.rows, g.out_height - first), worker});
      }
    };
    const auto tasks = static_cast<size_t>(g.batch * blocks);
    if (thread_count(n.host()) > state.workers) return run(0, tasks, 0);
    ParallelFor(n.host(), tasks,
                Grain(g.pixels() * g.in_channels * g.columns() / blocks / math::kWordsPerUnit), run);
  }

  // The totals of some rows. multiply(pixel, count, products) computes the products of `count` input pixels,
  // state.stride apart.
  template <class Total, class F>
  void AddRows(const Node& n, const State& state, const Geometry& g, const Rows& rows, Total* totals,
               const F& multiply) const {
    std::fill_n(totals, rows.count * g.out_row(), Total(0));
    Total* const products = n.scratch<Total>(state.products) + rows.worker * state.chunk * state.stride;
    const int64_t stride = window_.height.stride;
    const int64_t reach = rows.first + g.pad_top;
    const int64_t first = std::max<int64_t>(0, (reach - g.filter_height + stride) / stride);
    const int64_t last = std::min(g.in_height, (reach + rows.count - 1) / stride + 1);
    for (int64_t pixel = first * g.in_width; pixel < last * g.in_width; pixel += state.chunk) {
      const int64_t count = std::min(state.chunk, last * g.in_width - pixel);
      multiply(rows.image * g.pixels() + pixel, count, products);
      VectorizedFor<Total>([&]() FUSEBOX_INLINE {
        for (int64_t i = 0; i < count; ++i)
          AddPixel(g, rows, (pixel + i) / g.in_width, (pixel + i) % g.in_width, products + i * state.stride,
                   totals);
      });
    }
  }

  // Adds all taps of an input pixel.
  template <class Total>
  FUSEBOX_INLINE void AddPixel(const Geometry& g, const Rows& rows, int64_t y, int64_t x,
                               const Total* products, Total* totals) const {
    const int64_t left = x * window_.width.stride - g.pad_left;
    const int64_t top = y * window_.height.stride - g.pad_top - rows.first;
    const int64_t first = std::max<int64_t>(0, -left);
    const int64_t last = std::min(g.filter_width, g.out_width - left);
    const int64_t count = (last - first) * g.out_channels;
    for (int64_t ky = std::max<int64_t>(0, -top); ky < std::min(g.filter_height, rows.count - top); ++ky) {
      const Total* from = products + (ky * g.filter_width + first) * g.out_channels;
      Total* to = totals + (top + ky) * g.out_row() + (left + first) * g.out_channels;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = Plus(to[i], from[i]);
    }
  }

  // Integers wrap.
  template <class Total>
  FUSEBOX_INLINE static Total Plus(Total a, Total b) {
    if constexpr (!std::is_same_v<Total, int32_t>) return a + b;
    else return static_cast<Total>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }

  template <class T, class F>
  void RunReals(const Node& n, const State& state, const Geometry& g, const F& multiply) const {
    const T* bias = n.has_in(3) ? n.in(3).data<const T>() : nullptr;
    ForRows(n, state, g, [&](const Rows& rows) {
      T* out = n.out(0).data<T>() + (rows.image * g.out_height + rows.first) * g.out_row();
      AddRows(n, state, g, rows, out, [&](int64_t pixel, int64_t count, T* products) {
        multiply(rows.worker, n.in(2).data<const T>() + pixel * g.in_channels, count, products);
      });
      const int64_t count = rows.count * g.out_row();
      for (int64_t i = 0; bias && i < count; i += g.out_channels)
        for (int64_t c = 0; c < g.out_channels; ++c) out[i + c] += bias[c];
      Activate(activation_, out, static_cast<size_t>(count));
    });
  }

  template <class T>
  static const T* TapsFirst(const Node& n, const Geometry& g, T* to) {
    MoveTapsFirst(n.in(1).data<const T>(), g.out_channels, g.filter_height * g.filter_width, g.in_channels,
                  to);
    return to;
  }

  void RunDoubles(const Node& n, const State& state) const {
    const Geometry g(n, window_);
    RowProduct<double> product{};
    product.b = TapsFirst(n, g, n.scratch<double>(state.filter));
    product.lda = product.ldb = product.k = g.in_channels;
    product.ldc = product.n = g.columns();
    RunReals<double>(n, state, g, [&](uint32_t, const double* in, int64_t count, double* products) {
      RowProduct<double> part = product;
      part.a = in;
      part.m = count;
      part.c = products;
      Multiply(part);
    });
  }

  const float* PackedPanels(const Node& n, const State& state, const Geometry& g) const {
    if (panels_) return panels_->Get(n);
    float* const to = n.scratch<float>(state.panels);
    math::PackF32(PanelLayout(g.columns(), g.in_channels), TapsFirst(n, g, n.scratch<float>(state.filter)),
                  to);
    return to;
  }

  void RunFloats(const Node& n, const State& state) const {
    const Geometry g(n, window_);
    const math::F32Layout layout = PanelLayout(g.columns(), g.in_channels);
    const auto depth = static_cast<size_t>(g.in_channels);
    const float* const panels = PackedPanels(n, state, g);
    RunReals<float>(n, state, g, [&](uint32_t, const float* in, int64_t count, float* products) {
      math::Multiply(
          {math::MatrixRows(in, static_cast<size_t>(count), depth, depth),
           {.layout = layout, .weights = panels, .c = products, .ldc = static_cast<size_t>(state.stride)}},
          0, layout.groups());
    });
  }

  // Calls multiply(worker, pixel, count, sums) for the products, and finish(rows, sums, element of the
  // result) for their totals.
  template <class Sum, class F, class Finish>
  void RunSums(const Node& n, const State& state, const Geometry& g, const F& multiply,
               const Finish& finish) const {
    ForRows(n, state, g, [&](const Rows& rows) {
      Sum* sums = n.scratch<Sum>(state.totals) + rows.worker * state.rows * g.out_row();
      AddRows(n, state, g, rows, sums, [&](int64_t pixel, int64_t count, Sum* products) {
        multiply(rows.worker, pixel, count, products);
      });
      finish(rows, sums, (rows.image * g.out_height + rows.first) * g.out_row());
    });
  }

  void RunBytes(const Node& n, const State& state) const {
    const Geometry g(n, window_);
    const ProductShape shape = g.shape();
    const int8_t* const in = bytes_->Bytes(n, state.bytes, g.batch, n.in(2).data<const std::byte>());
    if (!bytes_->KeepsPacked(shape)) bytes_->PackNow(n, state.bytes, state.bytes_plan, shape);
    const std::byte* const packed = bytes_->Packed(n, state.bytes_plan, shape);
    const QuantizedBytes::BytesTask task{
        state.bytes, state.bytes_plan, shape, packed, 0, std::max<int64_t>(1, g.pixels()), 0};
    RunSums<int32_t>(
        n, state, g,
        [&](uint32_t worker, int64_t pixel, int64_t count, int32_t* products) {
          const ByteProductRows rows{in + pixel * g.in_channels, g.in_channels};
          bytes_->RunSums(n, task, worker, pixel, count, rows, products, state.stride);
        },
        [&](const Rows& rows, int32_t* sums, int64_t at) {
          const int64_t pixels = rows.count * g.out_width;
          bytes_->FinishPixels(n, state.bytes, rows.image, pixels, g.out_channels, sums, at);
        });
  }

  void RunWords(const Node& n, const State& state) const {
    const Geometry g(n, window_);
    const int16_t* const in = n.in(2).data<const int16_t>();
    words_->Start(n, state.words);
    const int16_t* const filter = words_->Weights(n, state.words);
    RunSums<int64_t>(
        n, state, g,
        [&](uint32_t, int64_t pixel, int64_t count, int64_t* products) {
          Multiply(IntegerProduct<int64_t>{in + pixel * g.in_channels, g.in_channels, filter, g.in_channels,
                                           products, state.stride, count, g.columns(), g.in_channels});
        },
        [&](const Rows& rows, const int64_t* sums, int64_t at) {
          const int64_t end = at + rows.count * g.out_row();
          for (; at < end; at += g.out_channels, sums += g.out_channels)
            words_->Finish(n, 0, g.out_channels, sums, at);
        });
  }

  WindowOptions window_;
  Activation activation_;
  // One of them, or none for floats.
  std::unique_ptr<QuantizedBytes> bytes_;
  std::unique_ptr<QuantizedWords> words_;
  std::unique_ptr<KeptPanels> panels_;  // of f32, if the weights are constant
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<TransposeConv>};

}  // namespace

constinit const KernelTable kTransposeConvKernels = kTable;

}  // namespace fusebox::cpu
