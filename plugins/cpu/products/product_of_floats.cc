// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <type_traits>

#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/products/matrix_product.h"
#include "plugins/cpu/products/panels.h"

namespace fusebox::cpu {
namespace {

// T is float or double.
template <class T>
class FloatProduct final : public MatrixProduct {
 public:
  FloatProduct(const Node& n, const ProductSpec& spec) : MatrixProduct(spec), images_(spec.images) {
    const ProductShape& s = spec.shape;
    if (!std::is_same_v<T, float> || !n.in(operands_.weights).is_const() || s.n < 2 || s.k < 0) return;
    kept_ = std::make_unique<KeptPanels>(n, operands_.weights, PanelsOf(n, s),
                                         spec.images || s.m >= kLeastPanelRows);
  }

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task) const override {
    const auto slot = [&](int64_t count, int64_t bytes) {
      return plan.scratch(static_cast<size_t>(Product(count, bytes)));
    };
    const ProductShape& s = task.shape;
    ProductState state{.task = task};
    FloatPlan& p = state.floats;
    // Packing weights pays for itself with some rows. A single output would be most of a panel's work for
    // nothing. A convolution whose input got other channels has other groups.
    const bool kept = kept_ && kept_->shape().n == s.n && kept_->shape().k == s.k;
    p.panels = std::is_same_v<T, float> && s.n >= 2 && ((images_ && kept) || s.m >= kLeastPanelRows);
    p.kept = p.panels && kept;
    if (p.panels && !kept) p.weights = slot(PanelsOf(n, s).elements(), sizeof(float));
    if (!p.panels && Rearranges(operands_)) p.weights = slot(Product(s.n, s.k), sizeof(T));
    if (!task.window) return state;
    const int64_t bytes = Product(std::max<int64_t>(1, s.k), sizeof(T));
    p.workers = std::max(1u, plan.threads());
    p.chunk = std::max<int64_t>(math::kPatchesBytes / bytes / 4 * 4, p.panels ? 32 : 4);
    p.chunk = std::clamp<int64_t>(s.m, 1, p.chunk);
    const int64_t rows = Product(p.chunk, p.workers);
    p.patches = slot(rows, bytes);
    if (p.panels) p.lines = slot(Product(rows, task.window->lines()), sizeof(T*));
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const void* input) const override {
    if (state.task.sums) Weights(n, state, 0, true);
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductPart& part) const override {
    const ProductShape& s = state.task.shape;
    if (s.m == 0 || s.n == 0) return;
    RowProduct<T> product{};
    product.m = s.m;
    product.n = s.n;
    product.k = product.lda = product.ldb = s.k;
    product.ldc = s.n * s.groups;
    product.a = static_cast<const T*>(part.input) + part.first_row * s.k;
    product.b = Weights(n, state, part.matrix, part.weights_change);
    product.bias = n.has_in(operands_.bias) ? n.in(operands_.bias).data<const T>() : nullptr;
    product.c = n.out(0).data<T>() + part.at;
    product.activation = activation_;
    if constexpr (std::is_same_v<T, float>) {
      if (state.floats.panels && state.task.window) return RunPanels(n, state, product);
      if (state.floats.panels) return MultiplyParallel(n.host(), product, product.b);
    }
    if (state.task.window) return RunWindow(n, state, product);
    MultiplyParallel(n.host(), product);
  }

  ProductSums Sums(const ProductState& state) const override {
    return {dtype_of<T>, state.task.shape.n, std::numeric_limits<int64_t>::max()};
  }

  void Sum(const Node& n, const ProductState& state, const void* input, uint32_t, int64_t first,
           int64_t count, void* sums) const override {
    const ProductShape& s = state.task.shape;
    const T* const a = static_cast<const T*>(input) + first * s.k;
    const T* const b = Weights(n, state, 0, false);
    T* const c = static_cast<T*>(sums);
    if constexpr (std::is_same_v<T, float>) {
      if (state.floats.panels) {
        const math::F32Layout layout = PanelLayout(s.n, s.k);
        const auto depth = static_cast<size_t>(s.k);
        return math::Multiply({math::MatrixRows(a, static_cast<size_t>(count), depth, depth),
                               {.layout = layout, .weights = b, .c = c, .ldc = layout.n}},
                              0, layout.groups());
      }
    }
    Multiply(RowProduct<T>{a, s.k, b, s.k, nullptr, c, s.n, count, s.n, s.k});
  }

  void Finish(const Node& n, const ProductState&, int64_t, int64_t pixels, int64_t channels, void* sums,
              int64_t) const override {
    T* const y = static_cast<T*>(sums);
    const T* const bias = n.has_in(operands_.bias) ? n.in(operands_.bias).data<const T>() : nullptr;
    for (int64_t i = 0; bias && i < pixels * channels; i += channels)
      for (int64_t c = 0; c < channels; ++c) y[i + c] += bias[c];
    Activate(activation_, y, static_cast<size_t>(pixels * channels));
  }

 private:
  int64_t TapsOf(const Node& n) const {
    const Shape w(n.in(operands_.weights));
    return operands_.by_tap ? CountFrom(w, 1) / std::max<int64_t>(1, w[w.rank() - 1]) : 1;
  }

  PanelShape PanelsOf(const Node& n, const ProductShape& s) const {
    return {.n = s.n, .k = s.k, .groups = s.groups, .taps = TapsOf(n), .transposed = operands_.transposed};
  }

  // Panels, or rows [n][k], from a matrix on. `changed`: computed weights are packed or moved now.
  const T* Weights(const Node& n, const ProductState& state, int64_t matrix, bool changed) const {
    const ProductShape& s = state.task.shape;
    const FloatPlan& p = state.floats;
    if constexpr (std::is_same_v<T, float>) {
      if (p.kept) return kept_->Get(n) + matrix * PanelElements(s.n, s.k);
    }
    const T* const from = n.in(operands_.weights).data<const T>() + matrix * s.n * s.k;
    if (!p.panels && !Rearranges(operands_)) return from;
    T* const to = n.scratch<T>(p.weights);
    if (!changed) return to;
    if (!p.panels && operands_.transposed) TransposeMatrix(from, s.k, s.n, to);
    else if (!p.panels) MoveTapsFirst(from, s.n / TapsOf(n), TapsOf(n), s.k, to);
    else if constexpr (std::is_same_v<T, float>) PackPanels(from, PanelsOf(n, s), to);
    return to;
  }

  // Calls run(first pixel, count, patches of the worker, worker).
  template <class F>
  static void ForChunks(const Node& n, const FloatPlan& plan, const ProductShape& s, const F& run) {
    const auto chunks = static_cast<size_t>((s.m + plan.chunk - 1) / plan.chunk);
    const auto part = [&](size_t begin, size_t end, uint32_t worker) {
      T* const patches = n.scratch<T>(plan.patches) + worker * plan.chunk * s.k;
      for (auto chunk = static_cast<int64_t>(begin); chunk < static_cast<int64_t>(end); ++chunk) {
        const int64_t first = chunk * plan.chunk;
        run(first, std::min(plan.chunk, s.m - first), patches, worker);
      }
    };
    if (thread_count(n.host()) > plan.workers) return part(0, chunks, 0);
    ParallelFor(n.host(), chunks, 1, part);
  }

  static void RunWindow(const Node& n, const ProductState& state, const RowProduct<T>& product) {
    const ProductShape& s = state.task.shape;
    ForChunks(n, state.floats, s, [&](int64_t first, int64_t count, T* patches, uint32_t) {
      RowProduct<T> part = product;
      part.a = patches;
      part.m = count;
      part.c += first * product.ldc;
      for (int64_t group = 0; group < s.groups; ++group) {
        CopyPatches(*state.task.window, product.a, group, first, count, patches);
        Multiply(part);
        part.b += s.n * s.k;
        part.c += s.n;
        if (part.bias) part.bias += s.n;
      }
    });
  }

  static void RunPanels(const Node& n, const ProductState& state, const RowProduct<float>& product) {
    const ProductShape& s = state.task.shape;
    const ConvGeometry& window = *state.task.window;
    const ActivationRange<float> range(product.activation);
    const auto run = [&](int64_t first, int64_t count, float* patches, uint32_t worker) {
      const float** const lines =
          n.scratch<const float*>(state.floats.lines) + worker * state.floats.chunk * window.lines();
      math::F32Task part{.rows = lines,
                         .m = static_cast<size_t>(count),
                         .segments = static_cast<size_t>(window.lines()),
                         .segment = static_cast<size_t>(window.line()),
                         .layout = PanelLayout(s.n, s.k),
                         .ldc = static_cast<size_t>(product.ldc),
                         .low = range.lowest,
                         .high = range.highest};
      float* const out = product.c + first * product.ldc;
      for (int64_t group = 0; group < s.groups; ++group) {
        PointPatches(window, product.a, group, first, count, patches, lines);
        part.weights = product.b + group * PanelElements(s.n, s.k);
        part.start = product.bias ? product.bias + group * s.n : nullptr;
        part.c = out + group * s.n;
        math::BestF32Kernels().multiply(part, 0, part.layout.groups());
      }
      if (product.activation == Activation::kTanh)
        Activate(product.activation, out, static_cast<size_t>(count * product.ldc));
    };
    if constexpr (std::is_same_v<T, float>) ForChunks(n, state.floats, s, run);
  }

  bool images_;
  std::unique_ptr<KeptPanels> kept_;  // of f32, if the weights are constant
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfFloats(const Node& n, const ProductSpec& spec) {
  if (n.in(spec.operands.input).dtype() == FBX_F64) return std::make_unique<FloatProduct<double>>(n, spec);
  return std::make_unique<FloatProduct<float>>(n, spec);
}

}  // namespace fusebox::cpu
