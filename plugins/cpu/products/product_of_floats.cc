// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <type_traits>

#include "plugins/cpu/products/dots.h"
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
    if (!n.in(operands_.weights).is_const() || s.n < 0 || s.k < 0 || !Packs(n, s)) return;
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
    // Packing weights pays for itself with some rows. A convolution whose input got other channels has other
    // groups.
    const bool kept = kept_ && kept_->shape().n == s.n && kept_->shape().k == s.k;
    p.panels = Packs(n, s) && ((images_ && kept) || s.m >= kLeastPanelRows);
    p.kept = p.panels && kept;
    if (p.panels && !kept) p.weights = slot(PanelsOf(n, s).elements(), sizeof(float));
    if (!p.panels && Rearranges(operands_)) p.weights = slot(Product(s.n, s.k), sizeof(T));
    if (!task.window) return state;
    const int64_t bytes = Product(std::max<int64_t>(1, s.k), sizeof(T));
    p.workers = std::max(1u, plan.threads());
    p.chunk = std::clamp<int64_t>(s.m, 1, std::max<int64_t>(math::kPatchesBytes / bytes / 4 * 4, 32));
    const int64_t rows = Product(p.chunk, p.workers);
    p.patches = slot(rows, bytes);
    p.segments = slot(Product(rows, task.window->segments()), sizeof(T*));
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const void* input) const override {
    if (state.task.sums) Weights(n, state, 0, true);
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductPart& part) const override {
    const ProductShape& s = state.task.shape;
    if (s.m == 0 || s.n == 0) return;
    const T* const a = static_cast<const T*>(part.input) + part.first_row * s.k;
    const DotTask<T> task{.rows = nullptr,
                          .m = s.m,
                          .segments = 1,
                          .segment = s.k,
                          .b = Weights(n, state, part.matrix, part.weights_change),
                          .n = s.n,
                          .bias = n.has_in(operands_.bias) ? n.in(operands_.bias).data<const T>() : nullptr,
                          .c = n.out(0).data<T>() + part.at,
                          .ldc = s.n * s.groups,
                          .activation = activation_};
    if (state.task.window) return RunWindow(n, state, a, task);
    if constexpr (kPackable) {
      if (state.floats.panels) return MultiplyPanelsParallel(n.host(), a, s.k, task);
    }
    MultiplyParallel(n.host(), a, s.k, task);
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
    if constexpr (kPackable) {
      if (state.floats.panels) {
        const math::F32Layout layout = PanelLayout(s.n, s.k);
        const auto depth = static_cast<size_t>(s.k);
        return math::Multiply({math::MatrixRows(a, static_cast<size_t>(count), depth, depth),
                               {.layout = layout, .weights = b, .c = c, .ldc = layout.n}},
                              0, layout.groups());
      }
    }
    Multiply(a, s.k, DotTask<T>{nullptr, count, 1, s.k, b, s.n, nullptr, c, s.n});
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
  static constexpr bool kPackable = std::is_same_v<T, float>;

  // Returns whether weights are packed if there are enough rows.
  bool Packs(const Node& n, const ProductShape& s) const {
    const Tensor w = n.in(operands_.weights);
    return kPackable && !DotsPay(s.n, s.k, operands_.transposed ? s.k : w.dim(w.rank() - 1));
  }

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
    if constexpr (kPackable) {
      if (p.kept) return kept_->Get(n) + matrix * PanelElements(s.n, s.k);
    }
    const T* const from = n.in(operands_.weights).data<const T>() + matrix * s.n * s.k;
    if (!p.panels && !Rearranges(operands_)) return from;
    T* const to = n.scratch<T>(p.weights);
    if (!changed) return to;
    if (!p.panels && operands_.transposed) TransposeMatrix(from, s.k, s.n, to);
    else if (!p.panels) MoveTapsFirst(from, s.n / TapsOf(n), TapsOf(n), s.k, to);
    else if constexpr (kPackable) PackPanels(from, PanelsOf(n, s), to);
    return to;
  }

  // Chunks of pixels, whose patches are pointed to.
  void RunWindow(const Node& n, const ProductState& state, const T* input, const DotTask<T>& task) const {
    const ProductShape& s = state.task.shape;
    const FloatPlan& plan = state.floats;
    const ConvGeometry& window = *state.task.window;
    const auto chunks = static_cast<size_t>((s.m + plan.chunk - 1) / plan.chunk);
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      T* const patches = n.scratch<T>(plan.patches) + worker * plan.chunk * s.k;
      const T** const rows = n.scratch<const T*>(plan.segments) + worker * plan.chunk * window.segments();
      DotTask<T> part = task;
      part.rows = rows;
      part.segments = window.segments();
      part.segment = window.segment();
      for (auto chunk = static_cast<int64_t>(begin); chunk < static_cast<int64_t>(end); ++chunk) {
        const int64_t first = chunk * plan.chunk;
        part.m = std::min(plan.chunk, s.m - first);
        for (int64_t group = 0; group < s.groups; ++group) {
          PointPatches(window, input, group, first, part.m, patches, rows);
          part.b = task.b + group * (plan.panels ? PanelElements(s.n, s.k) : s.n * s.k);
          part.bias = task.bias ? task.bias + group * s.n : nullptr;
          part.c = task.c + first * task.ldc + group * s.n;
          RunRows(plan, part);
        }
      }
    };
    if (thread_count(n.host()) > plan.workers) return run(0, chunks, 0);
    math::ParallelFor(n.host(), chunks, 1, run);
  }

  // The task's rows, with packed weights or as they are stored.
  static void RunRows(const FloatPlan& plan, const DotTask<T>& task) {
    if constexpr (kPackable) {
      if (plan.panels) return MultiplyPanels(task);
    }
    Multiply(task);
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
