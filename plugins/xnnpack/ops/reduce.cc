// SPDX-License-Identifier: Apache-2.0
// MEAN and SUM along constant axes.
#include <algorithm>
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

std::vector<int64_t> Axes(const NetworkNode& node) {
  std::vector<int64_t> axes;
  for (const int64_t axis : Integers(node, 1, "axes"))
    axes.push_back(static_cast<int64_t>(Axis(axis, node.in(0).rank())));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 2);
  RequireValue(node.in(0), Operand(0));
  RequireValue(node.out(0), "result 0");
  RequireSameType(node.in(0), node.out(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  node.require(!Axes(node).empty(), "ATTR", "no axes");
}

// XNNPACK's 8-bit mean has a range of multipliers; it has no 8-bit sum.
bool IsQuantized(const NetworkNode& node, xnn_reduce_operator type) {
  const float ratio = TensorQuantOf(node.in(0)).scale / TensorQuantOf(node.out(0)).scale;
  return type == xnn_reduce_mean && Quantized(node.in(0)) && node.in(0).is_static() &&
         Within(ratio, 0x1p-8f, 0x1p+7f) && node.in(0).count() < (int64_t{1} << 23);
}

template <xnn_reduce_operator type>
void Define(const NetworkNode& node, Subgraph& graph) {
  const std::vector<int64_t> axes = Axes(node);
  const uint32_t flags = node.attrs().b("keep_dims", false) ? XNN_FLAG_KEEP_DIMS : 0;
  const auto define = [&](uint32_t in, uint32_t out) {
    graph.Check(xnn_define_static_reduce_v2(graph.get(), type, axes.size(), axes.data(), in, out, flags));
  };
  if (IsQuantized(node, type)) return define(graph.In(node, 0), graph.Out(node));
  const uint32_t in = graph.FloatIn(node, 0);
  graph.FloatOut(node, [&](uint32_t out) { define(in, out); });
}

constexpr Operation kTable[] = {
    {"MEAN", Accept::kAlone, Supports, Define<xnn_reduce_mean>},
    {"SUM", Accept::kAlone, Supports, Define<xnn_reduce_sum>},
};

}  // namespace

constinit const OperationTable kReduceOps = kTable;

}  // namespace fusebox::xnnpack
