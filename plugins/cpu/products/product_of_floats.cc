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
    p.workers = std::max(1u, plan.threads());
    p.chunk = ChunkOf(*task.window, s, p.workers);
    const int64_t bytes = Product(std::max<int64_t>(1, s.k), sizeof(T));
    p.copies = std::clamp<int64_t>(math::kPatchesBytes / bytes, std::min<int64_t>(32, p.chunk), p.chunk);
    p.patches = slot(Product(p.copies, p.workers), bytes);
    p.rows = slot(Product(p.chunk, p.workers), 2 * sizeof(T*));
    p.offsets = slot(Product(p.workers, task.window->segments()), 2 * sizeof(ptrdiff_t));
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
    const DotTask<T> task{.b = Weights(n, state, part.matrix, part.weights_change),
                          .n = s.n,
                          .bias = n.has_in(operands_.bias) ? n.in(operands_.bias).data<const T>() : nullptr,
                          .activation = activation_};
    const auto k = static_cast<size_t>(s.k);
    const DotProduct<T> product{math::MatrixRows(a, static_cast<size_t>(s.m), k, k), task,
                                n.out(0).data<T>() + part.at, s.n * s.groups};
    if (state.task.window) return RunWindow(n, state, product);
    if constexpr (kPackable) {
      if (state.floats.panels) return MultiplyPanels(n.host(), product);
    }
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
    const auto depth = static_cast<size_t>(s.k);
    const math::StridedRows<T> rows = math::MatrixRows(a, static_cast<size_t>(count), depth, depth);
    if constexpr (kPackable) {
      if (state.floats.panels) {
        const math::F32Layout layout = PanelLayout(s.n, s.k);
        return math::Multiply({rows, {.layout = layout, .weights = b}, c, layout.n}, 0, layout.groups());
      }
    }
    Multiply(DotProduct<T>{rows, {b, s.n, nullptr}, c, s.n});
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

  // Pixels per chunk: of about one size, whose input stays in the cache while all weights are read.
  static int64_t ChunkOf(const ConvGeometry& g, const ProductShape& s, int64_t workers) {
    constexpr int64_t kLeast = 32;
    constexpr int64_t kMost = 1024;
    constexpr int64_t kPerWorker = 4;  // a worker that begins late takes fewer
    const int64_t under = std::min(g.height.slide.stride, g.height.in) *
                          std::min(g.width.slide.stride, g.width.in) * g.in_channels;
    const int64_t fit = math::kInputBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, under);
    const int64_t work = std::max<int64_t>(1, Product(s.k, s.n));
    const int64_t least = std::clamp(math::kAwakeWork / work, kLeast, kMost);
    const int64_t most = std::clamp(fit, kLeast, kMost);
    int64_t chunks = std::max<int64_t>(1, (s.m + most - 1) / most);
    if (workers > 1) chunks = std::max(chunks, std::min(kPerWorker * workers, s.m / least));
    return std::max<int64_t>(1, (s.m + chunks - 1) / chunks);
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

  // Chunks of pixels, whose patches are read where they lie.
  void RunWindow(const Node& n, const ProductState& state, const DotProduct<T>& product) const {
    const ProductShape& s = state.task.shape;
    const FloatPlan& plan = state.floats;
    const PatchSteps steps(*state.task.window);
    const int64_t segments = steps.g.segments();
    const auto chunks = static_cast<size_t>((s.m + plan.chunk - 1) / plan.chunk);
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      T** const rows = n.scratch<T*>(plan.rows) + 2 * worker * plan.chunk;
      const PatchRows<T> patches{const_cast<const T**>(rows), rows + plan.chunk,
                                 n.scratch<T>(plan.patches) + worker * plan.copies * s.k, plan.copies};
      ptrdiff_t* const first = n.scratch<ptrdiff_t>(plan.offsets) + 2 * worker * segments;
      const PatchOffsets offsets{first, first + segments};
      offsets.Set(steps);
      for (int64_t group = 0; group < s.groups; ++group) {
        const T* const from = product.a.x;
        DotTask<T> task = product.task;
        task.b += group * (plan.panels ? PanelElements(s.n, s.k) : s.n * s.k);
        if (task.bias) task.bias += group * s.n;
        int64_t pixel = static_cast<int64_t>(begin) * plan.chunk;
        const int64_t last = std::min(static_cast<int64_t>(end) * plan.chunk, s.m);
        while (pixel < last) {
          const int64_t count = std::min(plan.chunk, last - pixel);
          const auto [inside, copied] =
              patches.Set(steps, from, group, pixel, count, product.c + group * s.n, product.ldc);
          RunRows(plan, task, steps.g, patches, 0, inside, offsets.inside);
          RunRows(plan, task, steps.g, patches, count - copied, count, offsets.copied);
          pixel += inside + copied;
        }
      }
    };
    if (thread_count(n.host()) > plan.workers) return run(0, chunks, 0);
    math::ParallelFor(n.host(), chunks, 1, run);
  }

  // Rows [begin, end), with packed weights or as they are stored.
  static void RunRows(const FloatPlan& plan, const DotTask<T>& task, const ConvGeometry& window,
                      const PatchRows<T>& patches, int64_t begin, int64_t end, const ptrdiff_t* offsets) {
    if (begin == end) return;
    const math::Rows<T> rows{patches.a + begin,
                             patches.c + begin,
                             static_cast<size_t>(end - begin),
                             offsets,
                             static_cast<size_t>(window.segments()),
                             static_cast<size_t>(window.segment())};
    if constexpr (kPackable) {
      if (plan.panels) return MultiplyPanels(task, rows);
    }
    Multiply(task, rows);
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
