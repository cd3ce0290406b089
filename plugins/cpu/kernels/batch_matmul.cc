// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/gemm.h"
#include "plugins/cpu/integer_gemm.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quant.h"
#include "plugins/cpu/shape.h"

namespace fusebox::cpu {
namespace {

// [..., m, k] times [..., k, n]; adj_x and adj_y swap the last two dims of theirs first. Leading dims broadcast.
struct BatchMatMul {
  static constexpr std::string_view builtin = "BATCH_MATMUL";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    uint32_t x_slot = 0, y_slot = 0;
    ProductPlan product;
  };

  explicit BatchMatMul(const Node& n)
      : adj_x_(n.attrs().b("adj_x", false)), adj_y_(n.attrs().b("adj_y", false)) {}

  static void supports(const Node& n) {
    if (IsQuantised(n, 0)) {
      RequireByteMap(n);
      return RequireBytes(n, 1);
    }
    RequireDtype(n, 0, kFloats);
    RequireDtype(n, 1, kFloats);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    for (uint32_t i = 0; i < 2; ++i)
      if (n.in(i).rank() == 0 || n.in(i).rank() == 1) Fail("rank 2 at least is expected", Operand(i));
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, n.in(0).dtype());
    const BatchMatMul self(n);
    const Shape x(n.in(0)), y(n.in(1));
    SameDim(Last(x, !self.adj_x_), Last(y, self.adj_y_), "the dims to sum over");
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
    if (IsQuantised(n, 0)) {
      const Shape x(n.in(0)), y(n.in(1));
      state.x_slot = plan.scratch(bytes(0) / 2);  // of 16 bits each
      state.y_slot = plan.scratch(bytes(1) / 2);
      state.product = PlanProduct(plan, {Last(x, adj_x_), Last(y, !adj_y_), Last(x, !adj_x_)}, false);
      return state;
    }
    if (adj_x_) state.x_slot = plan.scratch(bytes(0));
    if (!adj_y_) state.y_slot = plan.scratch(bytes(1));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (IsQuantised(n, 0))
      return Dispatch(kBytes, n.in(0).dtype(), [&]<class T>() { RunStored<T>(n, state); });
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  // The last dim, or the one before it.
  static int64_t Last(const Shape& s, bool last) { return s[s.rank() - (last ? 1 : 2)]; }
  static Shape Leading(const Shape& s) { return Shape({s.begin(), static_cast<size_t>(s.rank() - 2)}); }

  template <class T>
  void Run(const Node& n, const State& state) const {
    const Shape x(n.in(0)), y(n.in(1)), batch = Broadcast(Leading(x), Leading(y));
    RowProduct<T> product{};
    product.m = Last(x, adj_x_);
    product.n = product.ldc = Last(y, !adj_y_);
    product.k = product.lda = product.ldb = Last(x, !adj_x_);
    product.c = n.out(0).data<T>();
    const int64_t batches = Count(batch);
    if (batches == 0 || product.m == 0 || product.n == 0) return;

    Walk<2> walk(batch, {BroadcastStrides(Leading(x), batch), BroadcastStrides(Leading(y), batch)});
    walk.Seek(0);
    const T *last_x = nullptr, *last_y = nullptr;  // a stretched operand is transposed once
    for (int64_t b = 0; b < batches; ++b, walk.Next(), product.c += product.m * product.n) {
      const T* bx = n.in(0).data<const T>() + walk.offset(0) * product.m * product.k;
      const T* by = n.in(1).data<const T>() + walk.offset(1) * product.n * product.k;
      if (bx != last_x)
        product.a = adj_x_ ? Transposed(bx, product.k, product.m, n.scratch<T>(state.x_slot)) : bx;
      if (by != last_y)
        product.b = adj_y_ ? by : Transposed(by, product.k, product.n, n.scratch<T>(state.y_slot));
      last_x = bx;
      last_y = by;
      MultiplyParallel(n.host(), product);
    }
  }

  template <class T>
  void RunStored(const Node& n, const State& state) const {
    const Shape x(n.in(0)), y(n.in(1)), batch = Broadcast(Leading(x), Leading(y));
    const ProductShape shape{Last(x, adj_x_), Last(y, !adj_y_), Last(x, !adj_x_)};
    const Affine qx = AffineOf(n.in(0)), qy = AffineOf(n.in(1)), qz = AffineOf(n.out(0));
    const FixedPoint scale(double{qx.scale * qy.scale} / qz.scale);
    const int64_t batches = Count(batch);
    if (batches == 0) return;
    int16_t *a = n.scratch<int16_t>(state.x_slot), *b = n.scratch<int16_t>(state.y_slot);
    T* out = n.out(0).data<T>();
    Walk<2> walk(batch, {BroadcastStrides(Leading(x), batch), BroadcastStrides(Leading(y), batch)});
    walk.Seek(0);
    for (int64_t i = 0; i < batches; ++i, walk.Next(), out += shape.rows * shape.columns) {
      Widen(n.in(0).data<const T>() + walk.offset(0) * shape.rows * shape.depth, shape.rows, shape.depth,
            adj_x_, qx.zero, a);
      Widen(n.in(1).data<const T>() + walk.offset(1) * shape.columns * shape.depth, shape.columns,
            shape.depth, !adj_y_, qy.zero, b);
      RunProduct(
          n, state.product, shape, b,
          [&](int64_t, int64_t first, int64_t, int16_t*) {
            return ProductRows{a + first * shape.depth, shape.depth};
          },
          [&](int64_t first, int64_t count, int64_t column, int64_t columns, const int32_t* sums) {
            for (int64_t row = first; row < first + count; ++row, sums += columns) {
              for (int64_t c = 0; c < columns; ++c)
                out[row * shape.columns + column + c] = ClampTo<T>(Scaled(sums[c], scale) + qz.zero);
            }
          });
    }
  }

  // [rows, depth] less the zero point, from [depth, rows] when `transposed`.
  template <class T>
  static void Widen(const T* in, int64_t rows, int64_t depth, bool transposed, int32_t zero, int16_t* out) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t p = 0; p < depth; ++p)
        out[i * depth + p] = static_cast<int16_t>(in[transposed ? p * rows + i : i * depth + p] - zero);
    }
  }

  template <class T>
  static const T* Transposed(const T* in, int64_t rows, int64_t columns, T* out) {
    TransposeMatrix(in, rows, columns, out);
    return out;
  }

  bool adj_x_, adj_y_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<BatchMatMul>};

}  // namespace

constinit const KernelTable kBatchMatMulKernels = kTable;

}  // namespace fusebox::cpu
