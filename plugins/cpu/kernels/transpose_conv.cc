// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV and CONV_3D_TRANSPOSE: the gradient of a convolution from its result to its input. Input
// pixel x adds its filter taps k to the output pixels x * stride - padding + k * dilation: the products of
// some pixels with all taps are rows of one matrix product, whose sums are added in place.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/matrix_product.h"
#include "plugins/cpu/windows/patches.h"

namespace fusebox::cpu {
namespace {

// Operands: output shape, filter [out, height, width, in], input, bias.
struct Images {
  static constexpr std::string_view builtin = "TRANSPOSE_CONV";
  static constexpr ProductOperands operands{
      .input = 2, .weights = 1, .bias = 3, .by_tap = true, .exact_scales = true, .two_roundings = true};
  static constexpr int rank = 4;
  static constexpr int outputs = 0;    // dim of the filter
  static constexpr int first_tap = 1;  // the same

  static void Supports(const Node& n) { MatrixProduct::Supports(n, operands); }
};

// Operands: output shape, filter [depth, height, width, out, in], input, bias.
struct Volumes {
  static constexpr std::string_view builtin = "CONV_3D_TRANSPOSE";
  static constexpr ProductOperands operands{.input = 2, .weights = 1, .bias = 3};
  static constexpr int rank = 5;
  static constexpr int outputs = 3;
  static constexpr int first_tap = 0;

  static void Supports(const Node& n) {
    for (uint32_t i = 1; i < 4; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 2);
  }
};

template <class Form>
struct TransposeConv {
  static constexpr std::string_view builtin = Form::builtin;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    ConvGeometry geometry;
    ProductState product;
    int64_t chunk = 0;  // input pixels of a product
    int64_t lines = 0;  // result lines of a task
    uint32_t workers = 0;
    uint32_t products = 0;
    uint32_t totals = 0;
  };

  explicit TransposeConv(const Node& n) : window_(ReadWindowOptions(n)) {
    const Tensor filter = n.in(1);
    ProductSpec spec{.operands = Form::operands,
                     .activation = FusedActivation(n),
                     .asymmetric = true,
                     .images = true,
                     .shape = {-1, -1, -1}};
    if (filter.is_const())
      spec.shape = {-1, Count(filter.dims().first(Form::rank - 1)), filter.dim(Form::rank - 1)};
    product_ = MatrixProduct::Choose(n, spec);
  }

  static void supports(const Node& n) { Form::Supports(n); }

  static void infer(const Node& n, Infer& out) {
    constexpr int kLast = Form::rank - 1;
    Arity(n, 3, 4);
    RequireRank(n, 0, 1);
    RequireRank(n, 1, Form::rank);
    RequireRank(n, 2, Form::rank);
    ReadWindowOptions(n);
    if (Form::rank == 5) DepthSlide(n);
    const Tensor filter = n.in(1);
    const Tensor in = n.in(2);
    for (int i = Form::first_tap; i < Form::first_tap + Form::rank - 2; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    SameDim(DimOrUnknown(filter, kLast), DimOrUnknown(in, kLast), "channels of the filter and of the input");
    const int64_t outs = DimOrUnknown(filter, Form::outputs);
    MatrixProduct::Check(n, Form::operands, outs);
    if (!n.in(0).has_value()) {
      out.needs_value(0);
      Shape unknown{DimOrUnknown(in, 0), -1, -1};
      if (Form::rank == 5) unknown.push_back(-1);
      unknown.push_back(outs);
      return out.set(0, in.dtype(), unknown);
    }
    const Shape shape = IntList(n.in(0), 0);
    if (shape.rank() != Form::rank || !shape.is_static())
      Fail("an output shape of " + Text(shape), Operand(0));
    SameDim(shape[0], DimOrUnknown(in, 0), "batch of the output shape and of the input");
    SameDim(shape[kLast], outs, "channels of the output shape and of the filter");
    out.set(0, in.dtype(), shape);
  }

  State prepare(const Node& n, Plan& plan) const {
    constexpr int64_t kLeast = 12;
    constexpr int64_t kMost = 96;
    State state{.geometry = Geometry(n)};
    const ConvGeometry& g = state.geometry;
    state.product = product_->Prepare(n, plan,
                                      {.shape = {g.pixels(), Product(g.lines(), g.line()), g.out_channels},
                                       .samples = g.batch,
                                       .rows_per_sample = std::max<int64_t>(1, g.image()),
                                       .sums = true});
    const ProductSums sums = product_->Sums(state.product);
    const auto width = static_cast<int64_t>(ElementSize(sums.dtype));
    state.workers = std::max(1u, plan.threads());
    state.lines = (g.depth.in * g.height.in + state.workers - 1) / state.workers;
    state.chunk =
        std::clamp(math::kSumsBytes / Product(width, std::max<int64_t>(1, sums.stride)), kLeast, kMost);
    state.chunk = std::min(state.chunk, sums.rows);
    const auto scratch = [&](int64_t elements) {
      return plan.scratch(static_cast<size_t>(Product(Product(elements, width), state.workers)));
    };
    state.products = scratch(Product(state.chunk, sums.stride));
    if (sums.dtype != n.out(0).dtype())
      state.totals = scratch(Product(state.lines, Product(g.width.in, g.in_channels)));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (n.out(0).count() == 0) return;
    const void* const input = product_->Begin(n, state.product, n.in(2).data<const std::byte>());
    Dispatch(Types<float, double, int32_t, int64_t>{}, product_->Sums(state.product).dtype,
             [&]<class Sum>() { Run<Sum>(n, state, input); });
  }

 private:
  // Some lines of the result of an image or volume.
  struct Lines {
    int64_t image, first, count;
    uint32_t worker;
  };

  // The convolution whose gradient this is: it reads the result, and its output pixels are the input's.
  ConvGeometry Geometry(const Node& n) const {
    const Tensor filter = n.in(1);
    const Tensor in = n.in(2);
    const Tensor out = n.out(0);
    constexpr int kHeight = Form::rank - 3;  // dim of the tensors
    const auto axis = [&](int dim, const Slide& slide) {
      const int64_t taps = filter.dim(dim - 1 + Form::first_tap);
      return ConvAxis{out.dim(dim), taps, in.dim(dim), PaddingBefore(out.dim(dim), taps, slide, window_.same),
                      slide};
    };
    const int64_t channels = filter.dim(Form::outputs);
    return {out.dim(0),
            channels,
            channels,
            in.dim(Form::rank - 1),
            Form::rank == 5 ? axis(1, DepthSlide(n)) : ConvAxis{1, 1, 1, 0, {}},
            axis(kHeight, window_.height),
            axis(kHeight + 1, window_.width)};
  }

  template <class Sum>
  void Run(const Node& n, const State& state, const void* input) const {
    const ConvGeometry& g = state.geometry;
    const int64_t lines = g.depth.in * g.height.in;
    const int64_t line = g.width.in * g.in_channels;
    const int64_t blocks = (lines + state.lines - 1) / state.lines;
    const bool in_place = n.out(0).dtype() == dtype_of<Sum>;
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
        const int64_t first = task % blocks * state.lines;
        const Lines part{task / blocks, first, std::min(state.lines, lines - first), worker};
        const int64_t at = (part.image * lines + first) * line;
        Sum* const totals =
            in_place ? n.out(0).data<Sum>() + at : n.scratch<Sum>(state.totals) + worker * state.lines * line;
        std::fill_n(totals, part.count * line, Sum(0));
        AddLines(n, state, input, part, totals);
        product_->Finish(n, state.product, part.image, part.count * g.width.in, g.in_channels, totals, at);
      }
    };
    const auto tasks = static_cast<size_t>(g.batch * blocks);
    if (thread_count(n.host()) > state.workers) return run(0, tasks, 0);
    const int64_t work = g.image() * g.out_channels * g.patch() / blocks / math::kWordsPerUnit;
    ParallelFor(n.host(), tasks, Grain(work), run);
  }

  // The places along an axis whose windows reach one of the elements [first, last].
  struct Places {
    int64_t first, end;

    Places(const ConvAxis& a, int64_t first, int64_t last)
        : first(std::max<int64_t>(
              0, (first + a.before - Extent(a.taps, a.slide) + a.slide.stride) / a.slide.stride)),
          end(std::min(a.out, (last + a.before) / a.slide.stride + 1)) {}
  };

  template <class Sum>
  void AddLines(const Node& n, const State& state, const void* input, const Lines& part, Sum* totals) const {
    const ConvGeometry& g = state.geometry;
    const int64_t stride = product_->Sums(state.product).stride;
    Sum* const products = n.scratch<Sum>(state.products) + part.worker * state.chunk * stride;
    const int64_t last = part.first + part.count - 1;
    const Places zs(g.depth, part.first / g.height.in, last / g.height.in);
    const bool planes = last / g.height.in > part.first / g.height.in;
    const Places ys(g.height, planes ? 0 : part.first % g.height.in,
                    planes ? g.height.in - 1 : last % g.height.in);
    for (int64_t z = zs.first; z < zs.end; ++z) {
      const int64_t end = (z * g.height.out + ys.end) * g.width.out;
      for (int64_t pixel = (z * g.height.out + ys.first) * g.width.out; pixel < end; pixel += state.chunk) {
        const int64_t count = std::min(state.chunk, end - pixel);
        product_->Sum(n, state.product, input, part.worker, part.image * g.image() + pixel, count, products);
        VectorizedFor<Sum>([&]() FUSEBOX_INLINE {
          for (int64_t i = 0; i < count; ++i) AddPixel(g, part, z, pixel + i, products + i * stride, totals);
        });
      }
    }
  }

  // Adds all taps of an input pixel of plane z.
  template <class Sum>
  FUSEBOX_INLINE static void AddPixel(const ConvGeometry& g, const Lines& part, int64_t z, int64_t pixel,
                                      const Sum* products, Sum* totals) {
    const int64_t above = pixel / g.width.out;  // lines of the input
    const int64_t z0 = z * g.depth.slide.stride - g.depth.before;
    const int64_t y0 = (above - z * g.height.out) * g.height.slide.stride - g.height.before;
    const int64_t x0 = (pixel - above * g.width.out) * g.width.slide.stride - g.width.before;
    const int64_t dilation = g.width.slide.dilation;
    const TapRange xs = TapsWithin(-x0, g.width.in - x0, g.width.taps, dilation);
    // Taps of adjacent pixels are added together.
    const int64_t runs = dilation == 1 ? 1 : xs.last - xs.first;
    const int64_t values = (dilation == 1 ? xs.last - xs.first : 1) * g.in_channels;
    for (int64_t kz = 0; kz < g.depth.taps; ++kz) {
      const int64_t line = (z0 + kz * g.depth.slide.dilation) * g.height.in + y0 - part.first;
      const TapRange ys = TapsWithin(std::max(-y0, -line), std::min(g.height.in - y0, part.count - line),
                                     g.height.taps, g.height.slide.dilation);
      const int64_t tap = (kz * g.height.taps + ys.first) * g.width.taps + xs.first;
      const int64_t at = (line + ys.first * g.height.slide.dilation) * g.width.in + x0 + xs.first * dilation;
      const Sum* from = products + tap * g.in_channels;
      Sum* to = totals + at * g.in_channels;
      for (int64_t ky = ys.first; ky < ys.last; ++ky) {
        for (int64_t run = 0; run < runs; ++run)
          AddTaps(from + run * g.in_channels, values, to + run * dilation * g.in_channels);
        from += g.width.taps * g.in_channels;
        to += g.height.slide.dilation * g.width.in * g.in_channels;
      }
    }
  }

  template <class Sum>
  FUSEBOX_INLINE static void AddTaps(const Sum* from, int64_t count, Sum* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = Plus(to[i], from[i]);
  }

  // The taps k with k * dilation in [begin, end).
  FUSEBOX_INLINE static TapRange TapsWithin(int64_t begin, int64_t end, int64_t taps, int64_t dilation) {
    begin = std::max<int64_t>(0, begin);
    end = std::max<int64_t>(0, end);
    if (dilation == 1) return {begin, std::min(taps, end)};
    return {(begin + dilation - 1) / dilation, std::min(taps, (end + dilation - 1) / dilation)};
  }

  // Integers wrap.
  template <class Sum>
  FUSEBOX_INLINE static Sum Plus(Sum a, Sum b) {
    if constexpr (!std::is_same_v<Sum, int32_t>) return a + b;
    else return static_cast<Sum>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }

  WindowOptions window_;
  std::unique_ptr<const MatrixProduct> product_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<TransposeConv<Images>>,
                                        &kernel_of<TransposeConv<Volumes>>};

}  // namespace

constinit const KernelTable kTransposeConvKernels = kTable;

}  // namespace fusebox::cpu
