// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of one operand. XNNPACK computes most 8-bit ones by a table of 256 entries.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

bool LeakyReluFits(const NetworkNode& node, float slope) {
  const float ratio = TensorQuantOf(node.in(0)).scale / TensorQuantOf(node.out(0)).scale;
  const float negative = ratio * slope;
  return Within(ratio, 0x1p-8f, 0x1p+7f) && std::fabs(negative) >= 0x1p-8f &&
         Within(negative, -0x1.FFFC00p+6f, 0x1p+7f);
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireValues(node, 0, 0);
  RequireSameType(node.in(0), node.out(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
}

void SupportsGelu(const NetworkNode& node) {
  Supports(node);
  node.require(!node.attrs().b("approximate", false), "ATTR", "tanh approximation");
}

// For ops that XNNPACK computes by table on 8 bits, but incorrectly for some finite floats: correctness takes
// priority over speed.
void SupportsBytes(const NetworkNode& node, const char* why_not_floats) {
  Supports(node);
  node.require(Quantized(node.in(0)), "RANGE", why_not_floats);
}

void SupportsLog(const NetworkNode& node) {
  SupportsBytes(node, "XNNPACK's logarithm of a float is infinite for denormals and from 2.5e38 on");
}

void SupportsRoot(const NetworkNode& node) {
  SupportsBytes(node, "XNNPACK's square root of a float is wrong for denormals and from 8.6e37 on");
}

void SupportsInverseRoot(const NetworkNode& node) {
  SupportsBytes(
      node, "XNNPACK's reciprocal square root of a float is wrong for 0, for denormals and from 8.6e37 on");
}

void SupportsWhole(const NetworkNode& node) {
  SupportsBytes(node, "XNNPACK rounds denormal floats to 0, whatever the direction");
}

void DefineWith(const NetworkNode& node, Subgraph& graph, xnn_unary_operator type,
                const xnn_unary_params* params) {
  graph.Check(xnn_define_unary(graph.get(), type, params, graph.In(node, 0), graph.Out(node), 0));
}

template <xnn_unary_operator type>
void Define(const NetworkNode& node, Subgraph& graph) {
  DefineWith(node, graph, type, nullptr);
}

void DefineElu(const NetworkNode& node, Subgraph& graph) {
  xnn_unary_params params{};
  params.elu.alpha = 1;
  DefineWith(node, graph, xnn_unary_elu, &params);
}

void DefineLeakyRelu(const NetworkNode& node, Subgraph& graph) {
  xnn_unary_params params{};
  params.leaky_relu.negative_slope = static_cast<float>(node.attrs().f64("alpha", 0));
  if (!Quantized(node.in(0)) || LeakyReluFits(node, params.leaky_relu.negative_slope))
    return DefineWith(node, graph, xnn_unary_leaky_relu, &params);
  const uint32_t in = graph.FloatIn(node, 0);
  graph.FloatOut(node, [&](uint32_t out) {
    graph.Check(xnn_define_unary(graph.get(), xnn_unary_leaky_relu, &params, in, out, 0));
  });
}

// XNNPACK's sigmoid of +-1e30, a common mask value, is NaN. Within +-128 it saturates long before the bound.
// XNNPACK joins the bounds with the producer of an operand without other readers.
void DefineSigmoid(const NetworkNode& node, Subgraph& graph) {
  uint32_t in = graph.In(node, 0);
  if (!Quantized(node.in(0))) {
    xnn_unary_params bounds{};
    bounds.clamp.min = -128;
    bounds.clamp.max = 128;
    const uint32_t bounded = graph.Temporary(xnn_datatype_fp32, {}, DimsOf(node.in(0)));
    graph.Check(xnn_define_unary(graph.get(), xnn_unary_clamp, &bounds, in, bounded, 0));
    in = bounded;
  }
  graph.Check(xnn_define_unary(graph.get(), xnn_unary_sigmoid, nullptr, in, graph.Out(node), 0));
}

// XNNPACK's clamp requires equal quantization of operand and result.
void DefineClamp(const NetworkNode& node, Subgraph& graph, float min, float max) {
  xnn_unary_params params{};
  params.clamp.min = min;
  params.clamp.max = max;
  if (!Quantized(node.in(0)) || TensorQuantOf(node.in(0)) == TensorQuantOf(node.out(0)))
    return DefineWith(node, graph, xnn_unary_clamp, &params);
  const uint32_t in = graph.FloatIn(node, 0);
  graph.FloatOut(node, [&](uint32_t out) {
    graph.Check(xnn_define_unary(graph.get(), xnn_unary_clamp, &params, in, out, 0));
  });
}

void DefineRelu(const NetworkNode& node, Subgraph& graph) { DefineClamp(node, graph, 0, INFINITY); }
void DefineRelu6(const NetworkNode& node, Subgraph& graph) { DefineClamp(node, graph, 0, 6); }
void DefineRelu1(const NetworkNode& node, Subgraph& graph) { DefineClamp(node, graph, 0, 1); }
void DefineReluN1(const NetworkNode& node, Subgraph& graph) { DefineClamp(node, graph, -1, 1); }

constexpr Operation kTable[] = {
    {"ABS", Accept::kAlone, Supports, Define<xnn_unary_abs>, Joins::kInPlace},
    {"CEIL", Accept::kAlone, SupportsWhole, Define<xnn_unary_ceiling>, Joins::kInPlace},
    {"ELU", Accept::kAlone, Supports, DefineElu, Joins::kInPlace},
    {"EXP", Accept::kAlone, Supports, Define<xnn_unary_exp>, Joins::kInPlace},
    {"FLOOR", Accept::kAlone, SupportsWhole, Define<xnn_unary_floor>, Joins::kInPlace},
    {"GELU", Accept::kAlone, SupportsGelu, Define<xnn_unary_gelu>, Joins::kInPlace},
    {"HARD_SWISH", Accept::kAlone, Supports, Define<xnn_unary_hardswish>, Joins::kInPlace},
    {"LEAKY_RELU", Accept::kAlone, Supports, DefineLeakyRelu, Joins::kInPlace},
    {"LOG", Accept::kAlone, SupportsLog, Define<xnn_unary_log>, Joins::kInPlace},
    {"LOGISTIC", Accept::kAlone, Supports, DefineSigmoid, Joins::kMaker},
    {"NEG", Accept::kAlone, Supports, Define<xnn_unary_negate>, Joins::kInPlace},
    {"RELU", Accept::kAlone, Supports, DefineRelu, Joins::kMaker},
    {"RELU6", Accept::kAlone, Supports, DefineRelu6, Joins::kMaker},
    {"RELU_0_TO_1", Accept::kAlone, Supports, DefineRelu1, Joins::kMaker},
    {"RELU_N1_TO_1", Accept::kAlone, Supports, DefineReluN1, Joins::kMaker},
    {"ROUND", Accept::kAlone, Supports, Define<xnn_unary_bankers_rounding>, Joins::kInPlace},
    {"RSQRT", Accept::kAlone, SupportsInverseRoot, Define<xnn_unary_reciprocal_square_root>, Joins::kInPlace},
    {"SQRT", Accept::kAlone, SupportsRoot, Define<xnn_unary_square_root>, Joins::kInPlace},
    {"SQUARE", Accept::kAlone, Supports, Define<xnn_unary_square>, Joins::kInPlace},
    {"TANH", Accept::kAlone, Supports, Define<xnn_unary_tanh>, Joins::kInPlace},
};

}  // namespace

constinit const OperationTable kUnaryOps = kTable;

}  // namespace fusebox::xnnpack
