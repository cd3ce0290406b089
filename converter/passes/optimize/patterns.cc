// SPDX-License-Identifier: Apache-2.0
// Activations and normalizations that TFLite has an op for, written out: GELU by erf and by tanh, HARD_SWISH,
// L2_NORMALIZATION.
#include <cmath>
#include <numbers>

#include "converter/import/tables/composites.h"
#include "converter/passes/optimize/pattern.h"

namespace fusebox::converter::optimize {
namespace {

// Returns whether `v` is the squared norm of x over its last dimension.
bool IsSquaredNorm(const Edit& e, ValueId x, ValueId v) {
  static const Pattern kSquare = Pattern::Var(0) * Pattern::Var(0);
  const Node* const sum = e.producer(v, Op::kSum);
  if (!sum || !sum->attrs.b("keep_dims", false) || e.rank(x) < 1 || e.rank(x) > 4) return false;
  const auto axes = e.Ints(sum->operands[1]);
  if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != e.rank(x) - 1)) return false;
  const auto square = Match(e, sum->operands[0], kSquare);
  return square && (*square)[0] == x;
}

// An op of variable 0.
struct Row {
  Pattern pattern;
  Op op;
  bool approximate = false;
  bool (*holds)(const Edit&, ValueId, ValueId) = nullptr;  // of variables 0 and 1
};

std::vector<Row> Rows() {
  const Pattern x = Pattern::Var(0);
  const Pattern least = {Op::kMaximum, {Pattern::Var(1), 1e-12}};  // the op's own bound
  const auto of = [](Op op) { return [op](const Pattern& z) { return Pattern(op, {z}); }; };
  const auto tanh = of(Op::kTanh);
  const auto relu6 = of(Op::kRelu6);
  const auto sqrt = of(Op::kSqrt);
  const auto rsqrt = of(Op::kRsqrt);
  const auto erf = [](const Pattern& z) { return Pattern(Op::kStablehloComposite, {z}, kErf); };
  const auto quotient = [](const Pattern& a, const Pattern& b) { return Pattern(Op::kDiv, {a, b}); };
  const double root = std::numbers::sqrt2;
  const double slope = std::sqrt(2 / std::numbers::pi);
  const double bend = 0.044715;
  return {
      {0.5 * x * (1 + erf(x / root)), Op::kGelu},
      {0.5 * x * (1 - erf(x / -root)), Op::kGelu},
      {0.5 * x * (1 - erf(-(x / root))), Op::kGelu},
      {0.5 * x * (1 + tanh(slope * (x + bend * x * x * x))), Op::kGelu, true},
      {0.5 * x * (1 + tanh(slope * x * (1 + bend * x * x))), Op::kGelu, true},
      {x * relu6(x + 3) / 6, Op::kHardSwish},
      {x * rsqrt(least), Op::kL2Normalization, false, IsSquaredNorm},
      {quotient(x, sqrt(least)), Op::kL2Normalization, false, IsSquaredNorm},
  };
}

bool Written(Edit& e, Node& node) {
  static const std::vector<Row> kRows = Rows();
  const ValueId y = node.results[0];
  if (HasActivation(node) || !e.is_f32(y)) return false;
  for (const Row& row : kRows) {
    const auto matched = Match(e, y, row.pattern);
    if (!matched) continue;
    const auto [x, other] = *matched;
    if (e.shape(x) != e.shape(y) || (row.holds && !row.holds(e, x, other))) continue;
    Attrs attrs;
    if (row.approximate) attrs.Set("approximate", true);
    e.Replace(node, e.Value(row.op, {x}, std::move(attrs)));
    return true;
  }
  return false;
}

// Replaces x to the power of 2, 0.5 or -0.5, which are separate ops.
bool Power(Edit& e, Node& node) {
  const ValueId x = node.operands[0];
  const auto exponent = e.Scalar(node.operands[1]);
  if (!exponent || !e.is_f32(x) || e.shape(x) != e.shape(node.results[0])) return false;
  const Op op = *exponent == 2 ? Op::kSquare : *exponent == 0.5 ? Op::kSqrt : Op::kRsqrt;
  if (*exponent != 2 && *exponent != 0.5 && *exponent != -0.5) return false;
  e.Replace(node, e.Value(op, {x}));
  return true;
}
constexpr Rule kPower = {Op::kPow, Power};

// Nobody else reads the difference.
bool SquaredDifference(Edit& e, Node& node) {
  static const Pattern kPattern = {Op::kSquare, {Pattern::Var(0) - Pattern::Var(1)}};
  const auto matched = Match(e, node.results[0], kPattern);
  if (!matched || !e.read_once(node.operands[0]) || !e.is_f32(node.results[0])) return false;
  e.Replace(node, e.Value(Op::kSquaredDifference, {matched->begin(), matched->end()}));
  return true;
}
constexpr Rule kSquaredDifference = {Op::kSquare, SquaredDifference};

}  // namespace

std::span<const Rule> PatternRules() {
  static constexpr Rule kRules[] = {kPower, kSquaredDifference, {Op::kMul, Op::kDiv, Written}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
