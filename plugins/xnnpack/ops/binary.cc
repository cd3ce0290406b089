// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of two operands, with broadcasting. Quantized if XNNPACK supports it and its multipliers
// are in range; otherwise in f32 between conversions.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

// A bound of XNNPACK's multipliers for 8-bit sums and products.
bool SumFits(const NetworkNode& node) {
  const float out = TensorQuantOf(node.out(0)).scale;
  const float a = TensorQuantOf(node.in(0)).scale / out;
  const float b = TensorQuantOf(node.in(1)).scale / out;
  return Within(a, 0x1p-10f, 0x1p+8f) && Within(b, 0x1p-10f, 0x1p+8f);
}

bool ProductFits(const NetworkNode& node) {
  const float ratio =
      TensorQuantOf(node.in(0)).scale * TensorQuantOf(node.in(1)).scale / TensorQuantOf(node.out(0)).scale;
  return Within(ratio, 0x1p-16f, 0x1p+8f);
}

bool SameQuantizedType(const NetworkNode& node) {
  return Quantized(node.in(0)) && node.in(0).dtype() == node.in(1).dtype() &&
         node.in(0).dtype() == node.out(0).dtype();
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 2);
  RequireValues(node, 0, 1);
  RequireSameType(node.in(0), node.in(1));
  RequireSameType(node.in(0), node.out(0));
  node.require(!node.constant(0) || !node.constant(1), "CONST", "both operands are constant");
  FusedRange(node);
}

// XNNPACK broadcasts in runs of the last dims that both operands have. A constant of few channels makes short
// runs with much overhead, so it is repeated for a whole row of the image.
constexpr int64_t kShortRun = 256;
constexpr int64_t kLongRow = 32768;

uint32_t Operand(const NetworkNode& node, Subgraph& graph, uint32_t operand) {
  const auto constant = node.constant(operand);
  const Tensor out = node.out(0);
  const Tensor other = node.in(1 - operand);
  if (!constant || !other.is_static() || other.rank() < 3 || other.rank() != out.rank())
    return graph.In(node, operand);
  const int64_t channels = constant->count();
  const int64_t row = other.dim(-2);
  const bool is_vector = constant->rank() >= 1 && constant->dim(-1) == channels && other.dim(-1) == channels;
  if (!is_vector || channels < 2 || channels > kShortRun || row < 2 || row * channels > kLongRow)
    return graph.In(node, operand);
  return graph.Repeated(node, operand, static_cast<size_t>(row));
}

template <xnn_binary_operator type>
void Define(const NetworkNode& node, Subgraph& graph) {
  const Range range = FusedRange(node);
  const xnn_binary_params params{range.min, range.max};
  bool quantized = false;
  if (type == xnn_binary_add || type == xnn_binary_subtract)
    quantized = SameQuantizedType(node) && SumFits(node);
  if (type == xnn_binary_multiply) quantized = SameQuantizedType(node) && ProductFits(node);
  if (quantized) {
    graph.Check(xnn_define_binary(graph.get(), type, &params, Operand(node, graph, 0),
                                  Operand(node, graph, 1), graph.Out(node), 0));
    return;
  }
  const auto in = [&](uint32_t i) {
    return Quantized(node.in(i)) ? graph.FloatIn(node, i) : Operand(node, graph, i);
  };
  const uint32_t a = in(0);
  const uint32_t b = in(1);
  graph.FloatOut(
      node, [&](uint32_t out) { graph.Check(xnn_define_binary(graph.get(), type, &params, a, b, out, 0)); });
}

constexpr Operation kTable[] = {
    {"ADD", Accept::kAlone, Supports, Define<xnn_binary_add>, Joins::kInPlace},
    {"DIV", Accept::kAlone, Supports, Define<xnn_binary_divide>, Joins::kInPlace},
    {"MAXIMUM", Accept::kAlone, Supports, Define<xnn_binary_maximum>, Joins::kInPlace},
    {"MINIMUM", Accept::kAlone, Supports, Define<xnn_binary_minimum>, Joins::kInPlace},
    {"MUL", Accept::kAlone, Supports, Define<xnn_binary_multiply>, Joins::kInPlace},
    {"PRELU", Accept::kAlone, Supports, Define<xnn_binary_prelu>, Joins::kInPlace},
    {"SQUARED_DIFFERENCE", Accept::kAlone, Supports, Define<xnn_binary_squared_difference>, Joins::kInPlace},
    {"SUB", Accept::kAlone, Supports, Define<xnn_binary_subtract>, Joins::kInPlace},
};

}  // namespace

constinit const OperationTable kBinaryOps = kTable;

}  // namespace fusebox::xnnpack
