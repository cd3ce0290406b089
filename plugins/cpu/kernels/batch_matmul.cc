// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/dots.h"
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

// [..., m, k] times [..., k, n]; adj_x and adj_y swap the last two dims first. Leading dims broadcast.
struct BatchMatMul {
  static constexpr std::string_view builtin = "BATCH_MATMUL";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    ProductState product;
    uint32_t rows = 0;  // of x, if adj_x
  };

  explicit BatchMatMul(const Node& n) : BatchMatMul(n.attrs()) {
    ProductSpec spec{.operands = OperandsOf(n)};
    spec.asymmetric = n.attrs().b("asymmetric_quantize_inputs", false);
    if (n.in(1).is_const()) {
      const Shape y(n.in(1));
      const int64_t m = n.in(0).rank() < 0 ? -1 : Last(Shape(n.in(0)), adj_x_);
      spec.shape = {m, Last(y, !adj_y_), Last(y, adj_y_), Count(Leading(y))};
    }
    product_ = MatrixProduct::Choose(n, spec);
  }

  static void supports(const Node& n) { MatrixProduct::Supports(n, OperandsOf(n)); }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    MatrixProduct::Check(n, OperandsOf(n), -1);
    for (uint32_t i = 0; i < 2; ++i)
      if (n.in(i).rank() == 0 || n.in(i).rank() == 1) Fail("expected rank 2 or more", Operand(i));
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, n.in(0).dtype());
    const BatchMatMul self(n.attrs());
    const Shape x(n.in(0));
    const Shape y(n.in(1));
    SameDim(Last(x, !self.adj_x_), Last(y, self.adj_y_), "the contracted dims");
    Shape dims = Broadcast(Leading(x), Leading(y));
    dims.push_back(Last(x, self.adj_x_));
    dims.push_back(Last(y, !self.adj_y_));
    out.set(0, n.in(0).dtype(), dims);
  }

  State prepare(const Node& n, Plan& plan) const {
    State state;
    state.product = product_->Prepare(n, plan, TaskOf(n));
    const auto size = static_cast<int64_t>(ElementSize(n.in(0).dtype()));
    if (adj_x_) state.rows = plan.scratch(static_cast<size_t>(Product(Count(n.in(0).dims()), size)));
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (n.out(0).count() == 0) return;
    const ProductShape& shape = state.product.task.shape;
    ProductPart part{.input = product_->Begin(n, state.product, Rows(n, state))};
    const Shape x = Leading(Shape(n.in(0)));
    const Shape y = Leading(Shape(n.in(1)));
    const Shape batch = Broadcast(x, y);
    Walk<2> walk(batch, {BroadcastStrides(x, batch), BroadcastStrides(y, batch)});
    walk.Seek(0);
    for (int64_t i = 0; i < Count(batch); ++i, walk.Next()) {
      part.first_row = walk.offset(0) * shape.m;
      part.weights_change = i == 0 || walk.offset(1) != part.matrix;
      part.matrix = walk.offset(1);
      product_->Run(n, state.product, part);
      part.at += shape.m * shape.n;
    }
  }

 private:
  explicit BatchMatMul(Attrs attrs) : adj_x_(attrs.b("adj_x", false)), adj_y_(attrs.b("adj_y", false)) {}

  static ProductOperands OperandsOf(const Node& n) {
    const bool adj_y = n.attrs().b("adj_y", false);
    return {.channel_axis = n.in(1).rank() - (adj_y ? 2 : 1),
            .transposed = !adj_y,
            .wide_weights = true,
            .round_half_up = true};
  }

  // The last dim, or the one before it.
  static int64_t Last(const Shape& s, bool last) { return s[s.rank() - (last ? 1 : 2)]; }
  static Shape Leading(const Shape& s) { return Shape({s.begin(), static_cast<size_t>(s.rank() - 2)}); }

  // Each row of x may have a scale.
  ProductTask TaskOf(const Node& n) const {
    const Shape x(n.in(0));
    const int64_t m = Last(x, adj_x_);
    return {.shape = {m, Last(Shape(n.in(1)), !adj_y_), Last(x, !adj_x_)},
            .samples = Product(Count(Leading(x)), m)};
  }

  // The rows of x, one after the other.
  const void* Rows(const Node& n, const State& state) const {
    const Tensor x = n.in(0);
    if (!adj_x_) return x.data<const std::byte>();
    auto* const to = n.scratch<std::byte>(state.rows);
    const int64_t rows = Last(Shape(x), true);
    const int64_t columns = Last(Shape(x), false);
    Dispatch(Types<float, double, int8_t, uint8_t, int16_t>{}, x.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < x.count(); i += rows * columns)
        TransposeMatrix(x.data<const T>() + i, columns, rows, reinterpret_cast<T*>(to) + i);
    });
    return to;
  }

  bool adj_x_;
  bool adj_y_;
  std::unique_ptr<const MatrixProduct> product_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<BatchMatMul>};

}  // namespace

constinit const KernelTable kBatchMatmulKernels = kTable;

}  // namespace fusebox::cpu
