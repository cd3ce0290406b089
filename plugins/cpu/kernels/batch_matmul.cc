// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/products/panels.h"
#include "plugins/cpu/products/quantized_product.h"

namespace fusebox::cpu {
namespace {

// [..., m, k] times [..., k, n]; adj_x and adj_y swap the last two dims first. Leading dims broadcast.
struct BatchMatMul {
  static constexpr std::string_view builtin = "BATCH_MATMUL";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t x_slot = 0, y_slot = 0;
    ProductPlan product;
    BytePlan bytes;
    QuantizedProduct::State quantized;
  };

  explicit BatchMatMul(const Node& n) : BatchMatMul(n.attrs()) {
    if (!TakesQuantized(n)) {
      KeepPanels(n);
      return;
    }
    quantized_ = QuantizedProduct(n, OperandsOf(n), Activation::kNone,
                                  n.attrs().b("asymmetric_quantize_inputs", false));
    if (!n.in(1).is_const()) return;
    const Shape y(n.in(1));
    quantized_.KeepPacked(n, Last(y, !adj_y_), Last(y, adj_y_));
  }

  static void supports(const Node& n) {
    if (TakesQuantized(n)) return QuantizedProduct::Supports(n, OperandsOf(n));
    RequireDtype(n, 0, kFloats);
    RequireDtype(n, 1, kFloats);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    if (!TakesQuantized(n)) SameDtype(n, 0, 1);
    for (uint32_t i = 0; i < 2; ++i)
      if (n.in(i).rank() == 0 || n.in(i).rank() == 1) Fail("expected rank 2 or more", Operand(i));
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, n.in(0).dtype());
    const BatchMatMul self(n.attrs());
    const Shape x(n.in(0)), y(n.in(1));
    SameDim(Last(x, !self.adj_x_), Last(y, self.adj_y_), "the contracted dims");
    Shape dims = Broadcast(Leading(x), Leading(y));
    dims.push_back(Last(x, self.adj_x_));
    dims.push_back(Last(y, !self.adj_y_));
    out.set(0, n.in(0).dtype(), dims);
  }

  State prepare(const Node& n, Plan& plan) const {
    const auto bytes = [&](uint32_t i) {
      const Shape s(n.in(i));
      return static_cast<size_t>(
          Product(Product(Last(s, true), Last(s, false)), n.in(i).dtype() == FBX_F64 ? 8 : 4));
    };
    State state;
    if (TakesQuantized(n)) {
      const Shape x(n.in(0));
      const ProductShape shape = ShapeOf(n);
      state.quantized = quantized_.Prepare(n, plan, Product(Count(Leading(x)), shape.rows));
      if (quantized_.packed()) state.bytes = quantized_.PlanBytes(n, plan, shape, false);
      else state.product = quantized_.PlanSums(plan, shape, false);
      const int64_t matrices = quantized_.hybrid() ? Count(Leading(x)) : 1;
      const int64_t elements = Product(matrices, Product(shape.rows, shape.depth));
      if (adj_x_)
        state.x_slot = plan.scratch(static_cast<size_t>(Product(elements, quantized_.hybrid() ? 4 : 2)));
      return state;
    }
    if (adj_x_) state.x_slot = plan.scratch(bytes(0));
    const ProductShape shape = ShapeOf(n);
    if (UsesPanels(n, shape) && panels_) return state;
    if (UsesPanels(n, shape))
      state.y_slot = plan.scratch(
          static_cast<size_t>(Product(PanelElements(shape.columns, shape.depth), sizeof(float))));
    else if (!adj_y_) state.y_slot = plan.scratch(bytes(1));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (TakesQuantized(n)) return quantized_.packed() ? RunBytes(n, state) : RunWide(n, state);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  explicit BatchMatMul(Attrs attrs) : adj_x_(attrs.b("adj_x", false)), adj_y_(attrs.b("adj_y", false)) {}

  void KeepPanels(const Node& n) {
    if (!n.in(1).is_const() || n.in(1).dtype() != FBX_F32) return;
    const Shape y(n.in(1));
    const bool used = n.in(0).is_static() && Last(Shape(n.in(0)), adj_x_) >= kLeastPanelRows;
    const PanelShape shape{.columns = Last(y, !adj_y_),
                           .depth = Last(y, adj_y_),
                           .groups = Count(Leading(y)),
                           .transposed = !adj_y_};
    panels_ = std::make_unique<KeptPanels>(n, 1, shape, used);
  }

  static ProductOperands OperandsOf(const Node& n) {
    const bool adj_y = n.attrs().b("adj_y", false);
    return {.channel_axis = n.in(1).rank() - (adj_y ? 2 : 1),
            .transposed = !adj_y,
            .wide_weights = true,
            .round_half_up = true,
            .packed = true};
  }
  static bool TakesQuantized(const Node& n) { return QuantizedProduct::Takes(n, {}); }

  // The last dim, or the one before it.
  static int64_t Last(const Shape& s, bool last) { return s[s.rank() - (last ? 1 : 2)]; }
  static Shape Leading(const Shape& s) { return Shape({s.begin(), static_cast<size_t>(s.rank() - 2)}); }

  static bool UsesPanels(const Node& n, const ProductShape& s) {
    return n.in(0).dtype() == FBX_F32 && s.rows >= kLeastPanelRows;
  }

  template <class T>
  void Run(const Node& n, const State& state) const {
    const bool panels = UsesPanels(n, ShapeOf(n));
    const Shape x(n.in(0)), y(n.in(1)), batch = Broadcast(Leading(x), Leading(y));
    RowProduct<T> product{};
    product.m = Last(x, adj_x_);
    product.n = product.ldc = Last(y, !adj_y_);
    product.k = product.lda = product.ldb = Last(x, !adj_x_);
    product.c = n.out(0).data<T>();
    const float* const kept = panels && panels_ ? panels_->Get(n) : nullptr;
    const int64_t batches = Count(batch);
    if (batches == 0 || product.m == 0 || product.n == 0) return;

    Walk<2> walk(batch, {BroadcastStrides(Leading(x), batch), BroadcastStrides(Leading(y), batch)});
    walk.Seek(0);
    const T *last_x = nullptr, *last_y = nullptr;  // a broadcast operand is transposed once
    for (int64_t b = 0; b < batches; ++b, walk.Next(), product.c += product.m * product.n) {
      const T* bx = n.in(0).data<const T>() + walk.offset(0) * product.m * product.k;
      const T* by = n.in(1).data<const T>() + walk.offset(1) * product.n * product.k;
      if (bx != last_x)
        product.a = adj_x_ ? Transposed(bx, product.k, product.m, n.scratch<T>(state.x_slot)) : bx;
      if constexpr (std::is_same_v<T, float>) {
        if (kept) {
          last_x = bx;
          MultiplyParallel(n.host(), product, kept + walk.offset(1) * panels_->shape().each());
          continue;
        }
        if (panels) {
          float* const packed = n.scratch<float>(state.y_slot);
          if (by != last_y)
            (adj_y_ ? math::PackF32 : math::PackF32Transposed)(PanelLayout(product.n, product.k), by, packed);
          last_x = bx, last_y = by;
          MultiplyParallel(n.host(), product, packed);
          continue;
        }
      }
      if (by != last_y)
        product.b = adj_y_ ? by : Transposed(by, product.k, product.n, n.scratch<T>(state.y_slot));
      last_x = bx;
      last_y = by;
      MultiplyParallel(n.host(), product);
    }
  }

  // For one matrix product.
  ProductShape ShapeOf(const Node& n) const {
    const Shape x(n.in(0)), y(n.in(1));
    return {Last(x, adj_x_), Last(y, !adj_y_), Last(x, !adj_x_)};
  }

  // Calls run(number of the product, matrix of x, matrix of y).
  template <class Run>
  void ForMatrices(const Node& n, const Run& run) const {
    const Shape x(n.in(0)), y(n.in(1)), batch = Broadcast(Leading(x), Leading(y));
    Walk<2> walk(batch, {BroadcastStrides(Leading(x), batch), BroadcastStrides(Leading(y), batch)});
    walk.Seek(0);
    for (int64_t i = 0; i < Count(batch); ++i, walk.Next()) run(i, walk.offset(0), walk.offset(1));
  }

  void RunBytes(const Node& n, const State& state) const {
    const ProductShape s = ShapeOf(n);
    const int64_t matrix = s.rows * s.depth;
    if (n.out(0).count() == 0) return;
    const int8_t* input = ByteInput(n, state, s);
    const std::byte* packed = quantized_.Packed(n, state.quantized, state.bytes, s);
    const size_t stride = quantized_.MatrixBytes(s);
    ForMatrices(n, [&](int64_t i, int64_t x, int64_t y) {
      const int8_t* a = input + x * matrix;
      if (adj_x_ && !quantized_.hybrid()) a = Transposed(a, s.depth, s.rows, n.scratch<int8_t>(state.x_slot));
      quantized_.RunBytes(n,
                          {state.quantized, state.bytes, s, packed + static_cast<size_t>(y) * stride,
                           x * s.rows, 1, i * s.rows * s.columns},
                          [&](int64_t, int64_t first, int64_t, int8_t*) {
                            return ByteProductRows{a + first * s.depth, s.depth};
                          });
    });
  }

  void RunWide(const Node& n, const State& state) const {
    const ProductShape s = ShapeOf(n);
    const int64_t matrix = s.rows * s.depth;
    if (n.out(0).count() == 0) return;
    const int16_t* input = quantized_.Input(n, state.quantized, 0);
    const int16_t* weights = quantized_.Weights(n, state.quantized);
    ForMatrices(n, [&](int64_t i, int64_t x, int64_t y) {
      const int16_t* a = input + x * matrix;
      if (adj_x_) a = Transposed(a, s.depth, s.rows, n.scratch<int16_t>(state.x_slot));
      RunProduct<int64_t>(
          n, state.product, s, weights + y * s.columns * s.depth,
          [&](int64_t, int64_t first, int64_t, int16_t*) {
            return ProductRows{a + first * s.depth, s.depth};
          },
          [&](int64_t first, int64_t count, int64_t column, int64_t columns, const int64_t* sums) {
            for (int64_t row = first; row < first + count; ++row, sums += columns)
              quantized_.Finish(n, state.quantized, 0, column, columns, sums,
                                (i * s.rows + row) * s.columns + column);
          });
    });
  }

  // Rows of a hybrid input have separate scales, so an adjoint input is transposed first.
  const int8_t* ByteInput(const Node& n, const State& state, const ProductShape& s) const {
    const int64_t matrices = Count(Leading(Shape(n.in(0)))), matrix = s.rows * s.depth;
    if (!quantized_.hybrid() || !adj_x_) return quantized_.Bytes(n, state.quantized, matrices * s.rows);
    float* rows = n.scratch<float>(state.x_slot);
    for (int64_t i = 0; i < matrices * matrix; i += matrix)
      TransposeMatrix(n.in(0).data<const float>() + i, s.depth, s.rows, rows + i);
    return quantized_.Bytes(n, state.quantized, matrices * s.rows, rows);
  }

  template <class T>
  static const T* Transposed(const T* in, int64_t rows, int64_t columns, T* out) {
    TransposeMatrix(in, rows, columns, out);
    return out;
  }

  bool adj_x_, adj_y_;
  QuantizedProduct quantized_;
  std::unique_ptr<KeptPanels> panels_;  // of f32, if y is constant; for many rows
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<BatchMatMul>};

}  // namespace

constinit const KernelTable kBatchMatmulKernels = kTable;

}  // namespace fusebox::cpu
