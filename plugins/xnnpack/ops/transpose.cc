// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE by a constant permutation.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

Dims Permutation(const Site& site) {
  const int rank = site.in(0).rank();
  const std::vector<int64_t> values = Integers(site, 1, "permutation");
  site.require(rank > 0 && static_cast<int>(values.size()) == rank, "SHAPE",
               "a permutation that does not fit the rank", Operand(1));
  Dims permutation;
  std::vector<bool> seen(values.size());
  for (const int64_t v : values) {
    permutation.push_back(Axis(v, rank));
    site.require(!seen[permutation.back()], "ATTR", "not a permutation", Operand(1));
    seen[permutation.back()] = true;
  }
  return permutation;
}

void Supports(const Site& site) {
  RequireArity(site, 2, 2);
  RequireValue(site.in(0), Operand(0));
  RequireValue(site.out(0), "result 0");
  RequireSameQuant(site.in(0), site.out(0));
  site.require(!site.constant(0), "CONST", "its operand is constant");
  Permutation(site);
}

void Define(const Site& site, Subgraph& graph) {
  const Dims permutation = Permutation(site);
  graph.Check(xnn_define_static_transpose(graph.get(), permutation.size(), permutation.data(),
                                          graph.In(site, 0), graph.Out(site), 0));
}

constexpr Operation kTable[] = {{"TRANSPOSE", Accept::kJoin, Supports, Define}};

}  // namespace

constinit const OperationTable kTransposeOps = kTable;

}  // namespace fusebox::xnnpack
