// SPDX-License-Identifier: Apache-2.0
// QUANTIZE and DEQUANTIZE. A DEQUANTIZE of constant f16 weights defines nothing: its readers unpack them.
#include <algorithm>
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

bool IsUnpacked(const Site& site) {
  const Tensor in = site.in(0);
  return in.is_const() && in.has_value() && in.dtype() == FBX_F16;
}

void SupportsQuantize(const Site& site) {
  RequireArity(site, 1, 1);
  RequireValues(site, 0, 0);
  site.require(!site.constant(0), "CONST", "its operand is constant");
  site.require(Quantized(site.out(0)), "DTYPE", "a result that is not quantized");
}

void DefineQuantize(const Site& site, Subgraph& graph) {
  const Tensor in = site.in(0), out = site.out(0);
  if (!Quantized(in)) return graph.Convert(graph.In(site, 0), graph.Out(site));
  graph.Requantize(graph.In(site, 0), AffineOf(in), graph.Out(site), AffineOf(out), DimsOf(in),
                   in.dtype() == out.dtype());
}

void SupportsDequantize(const Site& site) {
  RequireArity(site, 1, 1);
  RequireFloat(site.out(0), "result 0");
  if (IsUnpacked(site)) return;
  RequireValue(site.in(0), Operand(0));
  site.require(Quantized(site.in(0)), "DTYPE", "an operand that is not quantized");
  site.require(!site.constant(0), "CONST", "its operand is constant");
}

void DefineDequantize(const Site& site, Subgraph& graph) {
  if (!IsUnpacked(site)) return graph.Convert(graph.In(site, 0), graph.Out(site));
  const auto outputs = site.network().graph().outputs();
  if (std::find(outputs.begin(), outputs.end(), site.out_id(0)) == outputs.end()) return;
  const uint32_t floats =
      graph.Constant(xnn_datatype_fp32, DimsOf(site.out(0)), graph.Keep(ToFloat(site.in(0))));
  graph.Check(xnn_define_copy(graph.get(), floats, graph.Out(site), 0));
}

constexpr Operation kTable[] = {
    {"DEQUANTIZE", Accept::kJoin, SupportsDequantize, DefineDequantize},
    {"QUANTIZE", Accept::kAlone, SupportsQuantize, DefineQuantize},
};

}  // namespace

constinit const OperationTable kConvertOps = kTable;

}  // namespace fusebox::xnnpack
