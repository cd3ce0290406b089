// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{.two_roundings = true, .round_half_up = true, .blocks = true};

// Operands: input, weights [outputs, depth] (constant or computed), optional bias [outputs].
struct FullyConnected {
  static constexpr std::string_view builtin = "FULLY_CONNECTED";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  using State = ProductState;

  explicit FullyConnected(const Node& n) {
    product_ = MatrixProduct::Choose(n, {.operands = kOperands,
                                         .activation = FusedActivation(n),
                                         .asymmetric = n.attrs().b("asymmetric_quantize_inputs", false),
                                         .shape = ShapeOf(n)});
  }

  static void supports(const Node& n) {
    MatrixProduct::Supports(n, kOperands);
    const std::string_view format = n.attrs().s("weights_format", "DEFAULT");
    if (format != "DEFAULT")
      throw Reject{"ATTR", "weights in the format " + std::string(format), "attr weights_format"};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    RequireRank(n, 1, 2);
    const Tensor in = n.in(0);
    const Tensor weights = n.in(1);
    const int64_t outputs = DimOrUnknown(weights, 0);
    const int64_t depth = DimOrUnknown(weights, 1);
    MatrixProduct::Check(n, kOperands, outputs);
    const bool keep = n.attrs().b("keep_num_dims", false);
    if (in.rank() < 0) {
      if (keep) return out.unranked(0, in.dtype());
      return out.set(0, in.dtype(), {-1, outputs});
    }
    if (keep) {
      if (in.rank() == 0) Fail("a scalar has no last dimension", Operand(0));
      Shape dims(in);
      SameDim(dims[dims.rank() - 1], depth, "the last dim of the input and the depth of the weights");
      dims[dims.rank() - 1] = outputs;
      return out.set(0, in.dtype(), dims);
    }
    out.set(0, in.dtype(), {Batch(Shape(in), depth), outputs});
  }

  State prepare(const Node& n, Plan& plan) const {
    const ProductShape shape = ShapeOf(n);
    return product_->Prepare(n, plan, {.shape = shape, .samples = shape.m});
  }

  void invoke(const Node& n, const State& state) const { product_->RunAll(n, state); }

 private:
  // Number of input rows of `depth` elements; -1: unknown.
  static int64_t Batch(const Shape& in, int64_t depth) {
    if (in.rank() > 0 && depth >= 0 && in[in.rank() - 1] == depth)
      return Count({in.begin(), static_cast<size_t>(in.rank() - 1)});
    const int64_t count = Count(in);
    if (count < 0 || depth < 0) return -1;
    if (depth == 0 || count % depth != 0)
      Fail("an input of shape " + Text(in) + " does not divide into rows of " + std::to_string(depth),
           Operand(0));
    return count / depth;
  }

  // The rows are -1 while the shape of the input is unknown.
  static ProductShape ShapeOf(const Node& n) {
    const Tensor weights = n.in(1);
    if (weights.rank() != 2) return {-1, -1, -1};
    return {n.in(0).rank() < 0 ? -1 : Batch(Shape(n.in(0)), weights.dim(1)), weights.dim(0), weights.dim(1)};
  }

  std::unique_ptr<const MatrixProduct> product_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<FullyConnected>};

}  // namespace

constinit const KernelTable kFullyConnectedKernels = kTable;

}  // namespace fusebox::cpu
