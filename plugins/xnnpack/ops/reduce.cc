// SPDX-License-Identifier: Apache-2.0
// MEAN and SUM along constant axes.
#include <algorithm>
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

std::vector<int64_t> Axes(const Site& site) {
  std::vector<int64_t> axes;
  for (const int64_t axis : Integers(site, 1, "axes"))
    axes.push_back(static_cast<int64_t>(Axis(axis, site.in(0).rank())));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

void Supports(const Site& site) {
  RequireArity(site, 2, 2);
  RequireValue(site.in(0), Operand(0));
  RequireValue(site.out(0), "result 0");
  RequireSameType(site.in(0), site.out(0));
  site.require(!site.constant(0), "CONST", "its operand is constant");
  site.require(!Axes(site).empty(), "ATTR", "no axes");
}

// XNNPACK's mean of 8 bits takes multipliers of a range; sums of 8 bits it does not have.
bool IsQuantized(const Site& site, xnn_reduce_operator type) {
  const float ratio = AffineOf(site.in(0)).scale / AffineOf(site.out(0)).scale;
  return type == xnn_reduce_mean && Quantized(site.in(0)) && site.in(0).is_static() &&
         Within(ratio, 0x1p-8f, 0x1p+7f) && site.in(0).count() < (int64_t{1} << 23);
}

template <xnn_reduce_operator type>
void Define(const Site& site, Subgraph& graph) {
  const std::vector<int64_t> axes = Axes(site);
  const uint32_t flags = site.attrs().b("keep_dims", false) ? XNN_FLAG_KEEP_DIMS : 0;
  const auto define = [&](uint32_t in, uint32_t out) {
    graph.Check(xnn_define_static_reduce_v2(graph.get(), type, axes.size(), axes.data(), in, out, flags));
  };
  if (IsQuantized(site, type)) return define(graph.In(site, 0), graph.Out(site));
  const uint32_t in = graph.FloatIn(site, 0);
  graph.FloatOut(site, [&](uint32_t out) { define(in, out); });
}

constexpr Operation kTable[] = {
    {"MEAN", Accept::kAlone, Supports, Define<xnn_reduce_mean>},
    {"SUM", Accept::kAlone, Supports, Define<xnn_reduce_sum>},
};

}  // namespace

constinit const OperationTable kReduceOps = kTable;

}  // namespace fusebox::xnnpack
