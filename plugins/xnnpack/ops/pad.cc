// SPDX-License-Identifier: Apache-2.0
// PAD and PADV2 by constant amounts, with zeros or one constant value.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

struct Padding {
  Dims before, behind;
  float value = 0;
};

Padding ReadPadding(const Site& site) {
  const std::vector<int64_t> amounts = Integers(site, 1, "padding");
  site.require(amounts.size() == 2 * static_cast<size_t>(site.in(0).rank()), "SHAPE",
               "padding that does not fit the rank", Operand(1));
  Padding padding;
  for (size_t i = 0; i < amounts.size(); i += 2) {
    site.require(amounts[i] >= 0 && amounts[i + 1] >= 0, "ATTR", "negative padding", Operand(1));
    padding.before.push_back(static_cast<size_t>(amounts[i]));
    padding.behind.push_back(static_cast<size_t>(amounts[i + 1]));
  }
  if (!site.has_in(2)) return padding;
  const Tensor value = site.in(2);
  site.require(value.is_const() && value.has_value() && value.count() == 1, "NONCONST",
               "padding value is not constant", Operand(2));
  site.require(value.dtype() == FBX_F32 && !Quantized(site.in(0)), "DTYPE", "a quantized padding value",
               Operand(2));
  padding.value = value.data<const float>()[0];
  return padding;
}

void Supports(const Site& site) {
  RequireArity(site, 2, 3);
  RequireValue(site.in(0), Operand(0));
  RequireValue(site.out(0), "result 0");
  RequireSameQuant(site.in(0), site.out(0));
  site.require(!site.constant(0), "CONST", "its operand is constant");
  site.require(site.in(0).rank() > 0, "RANK", "a scalar");
  ReadPadding(site);
}

void Define(const Site& site, Subgraph& graph) {
  const Padding padding = ReadPadding(site);
  graph.Check(xnn_define_static_constant_pad(graph.get(), padding.before.data(), padding.behind.data(),
                                             padding.value, graph.In(site, 0), graph.Out(site), 0));
}

constexpr Operation kTable[] = {
    {"PAD", Accept::kAlone, Supports, Define, Joins::kReader},
    {"PADV2", Accept::kAlone, Supports, Define, Joins::kReader},
};

}  // namespace

constinit const OperationTable kPadOps = kTable;

}  // namespace fusebox::xnnpack
