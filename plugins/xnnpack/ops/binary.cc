// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of two operands, which broadcast. Quantised where XNNPACK has it and its multipliers reach; else in f32
// between conversions.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

// A bound of XNNPACK's multipliers of 8-bit sums and products.
bool SumFits(const Site& site) {
  const float out = AffineOf(site.out(0)).scale;
  const float a = AffineOf(site.in(0)).scale / out, b = AffineOf(site.in(1)).scale / out;
  return Within(a, 0x1p-10f, 0x1p+8f) && Within(b, 0x1p-10f, 0x1p+8f);
}

bool ProductFits(const Site& site) {
  const float ratio = AffineOf(site.in(0)).scale * AffineOf(site.in(1)).scale / AffineOf(site.out(0)).scale;
  return Within(ratio, 0x1p-16f, 0x1p+8f);
}

bool SameQuantisedType(const Site& site) {
  return Quantised(site.in(0)) && site.in(0).dtype() == site.in(1).dtype() &&
         site.in(0).dtype() == site.out(0).dtype();
}

void Supports(const Site& site) {
  RequireArity(site, 2, 2);
  RequireValues(site, 0, 1);
  RequireSameType(site.in(0), site.in(1));
  RequireSameType(site.in(0), site.out(0));
  site.require(!site.constant(0) || !site.constant(1), "CONST", "both operands are constant");
  FusedRange(site);
}

template <xnn_binary_operator type>
void Define(const Site& site, Subgraph& graph) {
  const Range range = FusedRange(site);
  const xnn_binary_params params{range.min, range.max};
  bool quantised = false;
  if (type == xnn_binary_add || type == xnn_binary_subtract)
    quantised = SameQuantisedType(site) && SumFits(site);
  if (type == xnn_binary_multiply) quantised = SameQuantisedType(site) && ProductFits(site);
  if (quantised) {
    graph.Check(xnn_define_binary(graph.get(), type, &params, graph.In(site, 0), graph.In(site, 1),
                                  graph.Out(site), 0));
    return;
  }
  const uint32_t a = graph.FloatIn(site, 0), b = graph.FloatIn(site, 1);
  graph.FloatOut(
      site, [&](uint32_t out) { graph.Check(xnn_define_binary(graph.get(), type, &params, a, b, out, 0)); });
}

constexpr Operation kTable[] = {
    {"ADD", Accept::kAlone, Supports, Define<xnn_binary_add>},
    {"DIV", Accept::kAlone, Supports, Define<xnn_binary_divide>},
    {"MAXIMUM", Accept::kAlone, Supports, Define<xnn_binary_maximum>},
    {"MINIMUM", Accept::kAlone, Supports, Define<xnn_binary_minimum>},
    {"MUL", Accept::kAlone, Supports, Define<xnn_binary_multiply>},
    {"PRELU", Accept::kAlone, Supports, Define<xnn_binary_prelu>},
    {"SQUARED_DIFFERENCE", Accept::kAlone, Supports, Define<xnn_binary_squared_difference>},
    {"SUB", Accept::kAlone, Supports, Define<xnn_binary_subtract>},
};

}  // namespace

constinit const OperationTable kBinaryOps = kTable;

}  // namespace fusebox::xnnpack
