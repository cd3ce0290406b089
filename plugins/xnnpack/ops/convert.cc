// SPDX-License-Identifier: Apache-2.0
// QUANTIZE and DEQUANTIZE. A DEQUANTIZE of constant weights defines nothing: its readers unpack them.
#include <algorithm>
#include "plugins/xnnpack/packing/constants.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

void SupportsQuantize(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireValues(node, 0, 0);
  node.require(!node.constant(0), "CONST", "its operand is constant");
  node.require(Quantized(node.out(0)), "DTYPE", "the result is not quantized");
}

// XNNPACK's conversion between two scales is up to a step off. It is used here for the bits of TFLite's XNNPACK
// delegate and LiteRT.
bool ConvertsDirectly(Tensor in, Tensor out) {
  const float ratio = TensorQuantOf(in).scale / TensorQuantOf(out).scale;
  return in.dtype() == out.dtype() && Within(ratio, 0x1p-8f, 0x1p+7f);
}

void DefineQuantize(const NetworkNode& node, Subgraph& graph) {
  const Tensor in = node.in(0);
  const Tensor out = node.out(0);
  if (!Quantized(in) || ConvertsDirectly(in, out)) return graph.Convert(graph.In(node, 0), graph.Out(node));
  graph.Requantize(graph.In(node, 0), graph.Out(node), DimsOf(in));
}

void SupportsDequantize(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireFloat(node.out(0), "result 0");
  if (IsUnpacked(node.in(0))) return;
  RequireValue(node.in(0), Operand(0));
  node.require(Quantized(node.in(0)), "DTYPE", "the operand is not quantized");
  node.require(!node.constant(0), "CONST", "its operand is constant");
}

void DefineDequantize(const NetworkNode& node, Subgraph& graph) {
  if (!IsUnpacked(node.in(0))) return graph.Convert(graph.In(node, 0), graph.Out(node));
  const auto outputs = node.network().graph().outputs();
  if (std::find(outputs.begin(), outputs.end(), node.out_id(0)) == outputs.end()) return;
  const uint32_t floats = graph.RealConstant(DimsOf(node.out(0)), graph.Keep(ToFloat(node.in(0))));
  graph.Check(xnn_define_copy(graph.get(), floats, graph.Out(node), 0));
}

constexpr Operation kTable[] = {
    {"DEQUANTIZE", Accept::kJoin, SupportsDequantize, DefineDequantize},
    {"QUANTIZE", Accept::kAlone, SupportsQuantize, DefineQuantize},
};

}  // namespace

constinit const OperationTable kConvertOps = kTable;

}  // namespace fusebox::xnnpack
