// SPDX-License-Identifier: Apache-2.0
// SOFTMAX along the last dim. 8-bit runs in f32: XNNPACK subgraphs have no 8-bit softmax.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

void Supports(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireValues(node, 0, 0);
  RequireSameType(node.in(0), node.out(0));
  node.require(node.in(0).rank() > 0, "RANK", "a scalar");
  node.require(node.attrs().f64("beta", 0) == 1, "ATTR", "beta is not 1", "attr beta");
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const uint32_t in = graph.FloatIn(node, 0);
  graph.FloatOut(node, [&](uint32_t out) { graph.Check(xnn_define_softmax(graph.get(), in, out, 0)); });
}

constexpr Operation kTable[] = {{"SOFTMAX", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kSoftmaxOps = kTable;

}  // namespace fusebox::xnnpack
