// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/block_product.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/products/panels.h"
#include "plugins/cpu/products/quantized_product.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {
namespace {

constexpr ProductOperands kOperands{.two_roundings = true, .round_half_up = true, .packed = true};

// Operands: input, weights [outputs, depth] (constant or computed), optional bias [outputs].
struct FullyConnected {
  static constexpr std::string_view builtin = "FULLY_CONNECTED";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    ProductPlan product;
    BytePlan bytes;
    QuantizedProduct::State quantized;
    BlockProduct::State blocks;
  };

  explicit FullyConnected(const Node& n) : activation_(FusedActivation(n)) {
    if (!QuantizedProduct::Takes(n, kOperands)) {
      const Tensor weights = n.in(1);
      if (!weights.is_const() || weights.dtype() != FBX_F32) return;
      const bool used = n.in(0).is_static() && ShapeOf(n).rows >= kLeastPanelRows;
      panels_ = std::make_unique<KeptPanels>(n, 1, PanelShape{weights.dim(0), weights.dim(1)}, used);
      return;
    }
    const bool asymmetric = n.attrs().b("asymmetric_quantize_inputs", false);
    if (BlockProduct::Takes(n, kOperands)) {
      blocks_ = BlockProduct(n, kOperands, activation_, asymmetric);
      return;
    }
    quantized_ = QuantizedProduct(n, kOperands, activation_, asymmetric);
    if (n.in(1).is_const()) quantized_.KeepPacked(n, n.in(1).dim(0), n.in(1).dim(1));
  }

  static void supports(const Node& n) {
    if (BlockProduct::Takes(n, kOperands)) {
      BlockProduct::Supports(n, kOperands);
    } else if (QuantizedProduct::Takes(n, kOperands)) {
      QuantizedProduct::Supports(n, kOperands);
    } else {
      for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
      RequireActivation(n, 0);
    }
    const std::string_view format = n.attrs().s("weights_format", "DEFAULT");
    if (format != "DEFAULT")
      throw Reject{"ATTR", "weights in the format " + std::string(format), "attr weights_format"};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    const bool quantized = QuantizedProduct::Takes(n, kOperands);
    if (!quantized) SameDtype(n, 0, 1);
    RequireRank(n, 1, 2);
    const Tensor in = n.in(0), weights = n.in(1);
    const int64_t outputs = DimOrUnknown(weights, 0), depth = DimOrUnknown(weights, 1);
    if (quantized) QuantizedProduct::Check(n, kOperands, outputs);
    else CheckBias(n, 2, outputs);
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
    if (!QuantizedProduct::Takes(n, kOperands)) return {};
    const ProductShape shape = ShapeOf(n);
    State state;
    if (BlockProduct::Takes(n, kOperands)) {
      state.blocks = blocks_.Prepare(n, plan, shape);
      return state;
    }
    if (quantized_.packed()) state.bytes = quantized_.PlanBytes(n, plan, shape, false);
    else state.product = quantized_.PlanSums(plan, shape, false);
    state.quantized = quantized_.Prepare(n, plan, shape.rows);
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    if (BlockProduct::Takes(n, kOperands)) return blocks_.Run(n, state.blocks, ShapeOf(n));
    if (QuantizedProduct::Takes(n, kOperands))
      return quantized_.packed() ? RunBytes(n, state) : RunWide(n, state);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      const Tensor weights = n.in(1), out = n.out(0);
      RowProduct<T> product{};
      product.n = weights.dim(0);
      product.lda = product.ldb = product.k = weights.dim(1);
      product.m = product.n > 0 ? out.count() / product.n : 0;
      product.a = n.in(0).data<const T>();
      product.b = weights.data<const T>();
      product.bias = n.has_in(2) ? n.in(2).data<const T>() : nullptr;
      product.c = out.data<T>();
      product.ldc = product.n;
      product.activation = activation_;
      if (product.m == 0) return;
      if constexpr (std::is_same_v<T, float>) {
        if (panels_ && product.m >= kLeastPanelRows)
          return MultiplyParallel(n.host(), product, panels_->Get(n));
      }
      MultiplyParallel(n.host(), product);
    });
  }

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

  static ProductShape ShapeOf(const Node& n) {
    const int64_t columns = n.in(1).dim(0), depth = n.in(1).dim(1);
    return {depth > 0 ? Count(n.in(0).dims()) / depth : 0, columns, depth};
  }

  void RunBytes(const Node& n, const State& state) const {
    const ProductShape shape = ShapeOf(n);
    const int8_t* input = quantized_.Bytes(n, state.quantized, shape.rows);
    if (quantized_.RunFirstRow(n, state.quantized, input, shape)) return;
    quantized_.RunBytes(n,
                        {state.quantized, state.bytes, shape,
                         quantized_.Packed(n, state.quantized, state.bytes, shape), 0, 1, 0},
                        [&](int64_t, int64_t first, int64_t, int8_t*) {
                          return ByteProductRows{input + first * shape.depth, shape.depth};
                        });
  }

  void RunWide(const Node& n, const State& state) const {
    const ProductShape shape = ShapeOf(n);
    const int16_t* input = quantized_.Input(n, state.quantized, shape.rows);
    RunProduct<int64_t>(
        n, state.product, shape, quantized_.Weights(n, state.quantized),
        [&](int64_t, int64_t first, int64_t, int16_t*) {
          return ProductRows{input + first * shape.depth, shape.depth};
        },
        [&](int64_t first, int64_t count, int64_t channel, int64_t columns, const int64_t* sums) {
          for (int64_t row = first; row < first + count; ++row, sums += columns)
            quantized_.Finish(n, state.quantized, row, channel, columns, sums, row * shape.columns + channel);
        });
  }

  Activation activation_;
  QuantizedProduct quantized_;
  BlockProduct blocks_;
  std::unique_ptr<KeptPanels> panels_;  // of f32, if the weights are constant; for many rows
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<FullyConnected>};

}  // namespace

constinit const KernelTable kFullyConnectedKernels = kTable;

}  // namespace fusebox::cpu
