// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of two operands, which broadcast. Quantized where XNNPACK has it and its multipliers reach;
// else in f32 between conversions.
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

bool SameQuantizedType(const Site& site) {
  return Quantized(site.in(0)) && site.in(0).dtype() == site.in(1).dtype() &&
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

// XNNPACK works off what broadcasts in runs of the last dims that both have. A constant of few channels would
// make runs so short that starting them is most of the work: it is repeated for a whole row of the image.
constexpr int64_t kShortRun = 256, kLongRow = 32768;

uint32_t Operand(const Site& site, Subgraph& graph, uint32_t operand) {
  const auto constant = site.constant(operand);
  const Tensor out = site.out(0), other = site.in(1 - operand);
  if (!constant || !other.is_static() || other.rank() < 3 || other.rank() != out.rank())
    return graph.In(site, operand);
  const int64_t channels = constant->count(), row = other.dim(-2);
  const bool is_vector = constant->rank() >= 1 && constant->dim(-1) == channels && other.dim(-1) == channels;
  if (!is_vector || channels < 2 || channels > kShortRun || row < 2 || row * channels > kLongRow)
    return graph.In(site, operand);
  return graph.Repeated(site, operand, static_cast<size_t>(row));
}

template <xnn_binary_operator type>
void Define(const Site& site, Subgraph& graph) {
  const Range range = FusedRange(site);
  const xnn_binary_params params{range.min, range.max};
  bool quantized = false;
  if (type == xnn_binary_add || type == xnn_binary_subtract)
    quantized = SameQuantizedType(site) && SumFits(site);
  if (type == xnn_binary_multiply) quantized = SameQuantizedType(site) && ProductFits(site);
  if (quantized) {
    graph.Check(xnn_define_binary(graph.get(), type, &params, Operand(site, graph, 0),
                                  Operand(site, graph, 1), graph.Out(site), 0));
    return;
  }
  const auto in = [&](uint32_t i) {
    return Quantized(site.in(i)) ? graph.FloatIn(site, i) : Operand(site, graph, i);
  };
  const uint32_t a = in(0), b = in(1);
  graph.FloatOut(
      site, [&](uint32_t out) { graph.Check(xnn_define_binary(graph.get(), type, &params, a, b, out, 0)); });
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
