// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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
  FloatProduct(const Node& n, const ProductSpec& spec) : MatrixProduct(spec) {
    const ProductShape& s = spec.shape;
    if (!std::is_same_v<T, float> || !n.in(operands_.weights).is_const() || s.n < 2 || s.k < 0) return;
    const PanelShape panels{.n = s.n, .k = s.k, .groups = s.groups, .transposed = operands_.transposed};
    kept_ = std::make_unique<KeptPanels>(n, operands_.weights, panels, spec.window || s.m >= kLeastPanelRows);
  }

  ProductState Prepare(const Node&, Plan& plan, const ProductTask& task, int64_t) const override {
    const auto slot = [&](int64_t count, int64_t bytes) {
      return plan.scratch(static_cast<size_t>(Product(count, bytes)));
    };
    const ProductShape& s = task.shape;
    const bool panels = UsesPanels(task);
    ProductState state;
    FloatPlan& p = state.floats;
    if (panels && !Keeps(s)) p.weights = slot(Product(PanelElements(s.n, s.k), s.groups), sizeof(float));
    if (!panels && operands_.transposed) p.weights = slot(Product(s.n, s.k), sizeof(T));
    if (task.window == nullptr) return state;
    const int64_t bytes = Product(std::max<int64_t>(1, s.k), sizeof(T));
    p.workers = std::max(1u, plan.threads());
    p.chunk = std::max<int64_t>(math::kPatchesBytes / bytes / 4 * 4, panels ? 32 : 4);
    p.chunk = std::clamp<int64_t>(s.m, 1, p.chunk);
    const int64_t rows = Product(p.chunk, p.workers);
    p.patches = slot(rows, bytes);
    if (panels) p.lines = slot(Product(rows, task.window->lines()), sizeof(T*));
    return state;
  }

  const void* Begin(const Node&, const ProductState&, const ProductTask&, int64_t,
                    const void* input) const override {
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductTask& task) const override {
    const ProductShape& s = task.shape;
    if (s.m == 0 || s.n == 0) return;
    RowProduct<T> product{};
    product.m = s.m;
    product.n = s.n;
    product.k = product.lda = product.ldb = s.k;
    product.ldc = s.n * s.groups;
    product.a = static_cast<const T*>(task.input) + task.first_row * s.k;
    product.bias = n.has_in(operands_.bias) ? n.in(operands_.bias).data<const T>() : nullptr;
    product.c = n.out(0).data<T>() + task.at;
    product.activation = activation_;
    if constexpr (std::is_same_v<T, float>) {
      if (UsesPanels(task)) {
        const float* const panels = Panels(n, state, task);
        if (task.window != nullptr) return RunWindow(n, state, task, product, panels);
        return MultiplyParallel(n.host(), product, panels);
      }
    }
    product.b = Weights(n, state, task);
    if (task.window != nullptr) return RunWindow(n, state, task, product);
    MultiplyParallel(n.host(), product);
  }

 private:
  // A convolution whose input got other channels has other groups.
  bool Keeps(const ProductShape& s) const {
    return kept_ && kept_->shape().n == s.n && kept_->shape().k == s.k;
  }

  // Packing weights pays for itself with some rows. A single output would be most of a panel's work for
  // nothing.
  bool UsesPanels(const ProductTask& task) const {
    if (!std::is_same_v<T, float> || task.shape.n < 2) return false;
    return (task.window != nullptr && Keeps(task.shape)) || task.shape.m >= kLeastPanelRows;
  }

  const float* Panels(const Node& n, const ProductState& state, const ProductTask& task) const {
    const ProductShape& s = task.shape;
    if (Keeps(s)) return kept_->Get(n) + task.matrix * PanelElements(s.n, s.k);
    auto* const to = n.scratch<float>(state.floats.weights);
    const auto* const from = n.in(operands_.weights).data<const float>() + task.matrix * s.n * s.k;
    if (task.weights_change)
      PackPanels(from, {.n = s.n, .k = s.k, .groups = s.groups, .transposed = operands_.transposed}, to);
    return to;
  }

  // [n][k], as products without packing read them.
  const T* Weights(const Node& n, const ProductState& state, const ProductTask& task) const {
    const ProductShape& s = task.shape;
    const T* const from = n.in(operands_.weights).data<const T>() + task.matrix * s.n * s.k;
    if (!operands_.transposed) return from;
    T* const to = n.scratch<T>(state.floats.weights);
    if (task.weights_change) TransposeMatrix(from, s.k, s.n, to);
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

  static void RunWindow(const Node& n, const ProductState& state, const ProductTask& task,
                        const RowProduct<T>& product) {
    const ProductShape& s = task.shape;
    ForChunks(n, state.floats, s, [&](int64_t first, int64_t count, T* patches, uint32_t) {
      RowProduct<T> part = product;
      part.a = patches;
      part.m = count;
      part.c += first * product.ldc;
      for (int64_t group = 0; group < s.groups; ++group) {
        CopyPatches(*task.window, product.a, group, first, count, patches);
        Multiply(part);
        part.b += s.n * s.k;
        part.c += s.n;
        if (part.bias) part.bias += s.n;
      }
    });
  }

  static void RunWindow(const Node& n, const ProductState& state, const ProductTask& task,
                        const RowProduct<float>& product, const float* panels) {
    const ProductShape& s = task.shape;
    const ConvGeometry& window = *task.window;
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
        part.weights = panels + group * PanelElements(s.n, s.k);
        part.start = product.bias ? product.bias + group * s.n : nullptr;
        part.c = out + group * s.n;
        math::BestF32Kernels().multiply(part, 0, part.layout.groups());
      }
      if (product.activation == Activation::kTanh)
        Activate(product.activation, out, static_cast<size_t>(count * product.ldc));
    };
    if constexpr (std::is_same_v<T, float>) ForChunks(n, state.floats, s, run);
  }

  std::unique_ptr<KeptPanels> kept_;  // of f32, if the weights are constant
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfFloats(const Node& n, const ProductSpec& spec) {
  if (n.in(spec.operands.input).dtype() == FBX_F64) return std::make_unique<FloatProduct<double>>(n, spec);
  return std::make_unique<FloatProduct<float>>(n, spec);
}

}  // namespace fusebox::cpu
