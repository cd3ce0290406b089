// SPDX-License-Identifier: Apache-2.0
// Activations and normalizations that TFLite has an op for, written out: GELU by erf and by tanh, HARD_SWISH,
// L2_NORMALIZATION.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "converter/import/tables/composites.h"
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

bool Near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

// A product, taken apart: a number times values.
struct Product {
  double coefficient = 1;
  std::vector<ValueId> factors;

  bool Is(double wanted, size_t count) const { return Near(coefficient, wanted) && factors.size() == count; }
  bool AllAre(ValueId x) const {
    return std::ranges::all_of(factors, [&](ValueId v) { return v == x; });
  }
};

constexpr int kDeepestProduct = 6;  // products that are looked into

void Factors(const Edit& e, ValueId v, int depth, Product& out) {
  const Node* const node = e.producer(v);
  const auto whole = [&] { out.factors.push_back(v); };
  if (!node || depth == kDeepestProduct) return whole();
  if (node->is(Op::kSquare)) {
    Factors(e, node->operands[0], depth + 1, out);
    return Factors(e, node->operands[0], depth + 1, out);
  }
  if (node->is(Op::kPow) && e.Scalar(node->operands[1]) == 3.0) {
    for (int i = 0; i < 3; ++i) out.factors.push_back(node->operands[0]);
    return;
  }
  if ((!node->is(Op::kMul) && !node->is(Op::kDiv)) || HasActivation(*node)) return whole();
  const auto first = e.Scalar(node->operands[0]), second = e.Scalar(node->operands[1]);
  if (node->is(Op::kDiv)) {
    if (!second || *second == 0) return whole();
    out.coefficient /= *second;
    return Factors(e, node->operands[0], depth + 1, out);
  }
  if (first) out.coefficient *= *first;
  else Factors(e, node->operands[0], depth + 1, out);
  if (second) out.coefficient *= *second;
  else Factors(e, node->operands[1], depth + 1, out);
}

Product FactorsOf(const Edit& e, ValueId v) {
  Product out;
  Factors(e, v, 0, out);
  return out;
}

// The other operand of an op of two, when one is this number.
std::optional<ValueId> Beside(const Edit& e, const Node* node, Op op, double number) {
  if (!node || !node->is(op) || HasActivation(*node)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (e.Scalar(node->operands[i]) && Near(*e.Scalar(node->operands[i]), number))
      return node->operands[1 - i];
  return std::nullopt;
}

// x of erf(x).
std::optional<ValueId> ErfOf(const Edit& e, ValueId v) {
  const Node* const node = e.producer(v);
  return node && IsInternal(*node) && node->name == kErf ? std::optional(node->operands[0]) : std::nullopt;
}

// 1 + erf(x / sqrt 2), which is erfc(-x / sqrt 2) too.
bool IsErfFactor(const Edit& e, ValueId v, ValueId x) {
  const auto scaled = [&](ValueId z, double by) {
    const Product p = FactorsOf(e, z);
    return p.Is(by, 1) && p.AllAre(x);
  };
  if (const auto erf = Beside(e, e.producer(v), Op::kAdd, 1))
    if (const auto z = ErfOf(e, *erf)) return scaled(*z, 1 / std::numbers::sqrt2);
  const Node* const complement = e.producer(v, Op::kSub);
  if (!complement || e.Scalar(complement->operands[0]) != 1.0) return false;
  const auto z = ErfOf(e, complement->operands[1]);
  if (!z) return false;
  if (scaled(*z, -1 / std::numbers::sqrt2)) return true;
  const Node* const negated = e.producer(*z, Op::kNeg);
  return negated && scaled(negated->operands[0], 1 / std::numbers::sqrt2);
}

// 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))
bool IsTanhFactor(const Edit& e, ValueId v, ValueId x) {
  const auto bent = Beside(e, e.producer(v), Op::kAdd, 1);
  const Node* const tanh = bent ? e.producer(*bent, Op::kTanh) : nullptr;
  if (!tanh) return false;
  const Product inner = FactorsOf(e, tanh->operands[0]);
  const double slope = std::sqrt(2 / std::numbers::pi);
  if (inner.Is(slope, 1)) {
    const Node* const sum = e.producer(inner.factors[0], Op::kAdd);
    if (!sum || HasActivation(*sum)) return false;
    for (size_t i = 0; i < 2; ++i) {
      const Product cube = FactorsOf(e, sum->operands[1 - i]);
      if (sum->operands[i] == x && cube.Is(0.044715, 3) && cube.AllAre(x)) return true;
    }
    return false;
  }
  if (!inner.Is(slope, 2)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const auto square = Beside(e, e.producer(inner.factors[1 - i]), Op::kAdd, 1);
    if (inner.factors[i] != x || !square) continue;
    const Product p = FactorsOf(e, *square);
    if (p.Is(0.044715, 2) && p.AllAre(x)) return true;
  }
  return false;
}

// RELU6(x + 3), whether the clamp is an op of its own or not.
bool IsShiftedRelu6(const Edit& e, ValueId v, ValueId x) {
  const Node* node = e.producer(v);
  if (node && node->is(Op::kRelu6)) {
    const auto inner = Beside(e, e.producer(node->operands[0]), Op::kAdd, 3);
    return inner && *inner == x;
  }
  if (!node || !node->is(Op::kAdd) || node->attrs.str("fused_activation_function", "NONE") != "RELU6")
    return false;
  return (node->operands[0] == x && e.IsNear(node->operands[1], 3)) ||
         (node->operands[1] == x && e.IsNear(node->operands[0], 3));
}

bool Activation(Edit& e, Node& node) {
  if (HasActivation(node) || !e.is_f32(node.results[0])) return false;
  const Product product = FactorsOf(e, node.results[0]);
  if (product.factors.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = product.factors[i], other = product.factors[1 - i];
    if (x == other || e.shape(x) != e.shape(node.results[0])) continue;
    const bool by_erf = Near(product.coefficient, 0.5) && IsErfFactor(e, other, x);
    const bool by_tanh = Near(product.coefficient, 0.5) && IsTanhFactor(e, other, x);
    if (by_erf || by_tanh) {
      Attrs attrs;
      if (by_tanh) attrs.Set("approximate", true);
      return e.Replace(node, e.Value(Op::kGelu, {x}, std::move(attrs))), true;
    }
    if (Near(product.coefficient, 1.0 / 6) && IsShiftedRelu6(e, other, x))
      return e.Replace(node, e.Value(Op::kHardSwish, {x})), true;
  }
  return false;
}

// The squared norm of x over its last dimension, no smaller than 1e-12: L2_NORMALIZATION's own bound,
// squared.
bool IsSquaredNorm(const Edit& e, ValueId v, ValueId x) {
  const auto bounded = Beside(e, e.producer(v), Op::kMaximum, 1e-12);
  const Node* const sum = bounded ? e.producer(*bounded, Op::kSum) : nullptr;
  if (!sum || !sum->attrs.b("keep_dims", false)) return false;
  const auto axes = e.Ints(sum->operands[1]);
  if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != e.rank(x) - 1)) return false;
  const Product square = FactorsOf(e, sum->operands[0]);
  return square.Is(1, 2) && square.AllAre(x);
}

bool L2(Edit& e, Node& node) {
  if (HasActivation(node) || !e.is_f32(node.results[0])) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = node.operands[i];
    if (e.rank(x) < 1 || e.rank(x) > 4 || e.shape(x) != e.shape(node.results[0])) continue;
    if (node.is(Op::kDiv) && i == 1) continue;
    const Node* const root = e.producer(node.operands[1 - i], node.is(Op::kDiv) ? Op::kSqrt : Op::kRsqrt);
    if (root && IsSquaredNorm(e, root->operands[0], x))
      return e.Replace(node, e.Value(Op::kL2Normalization, {x})), true;
  }
  return false;
}

// x to the power of a constant that has an op of its own.
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

// (a - b)^2, where nothing else wants the difference.
bool SquaredDifference(Edit& e, Node& node) {
  const Node* const difference = e.producer(node.operands[0], Op::kSub);
  if (!difference || HasActivation(*difference) || !e.read_once(node.operands[0])) return false;
  if (!e.is_f32(node.results[0])) return false;
  e.Replace(node, e.Value(Op::kSquaredDifference, {difference->operands[0], difference->operands[1]}));
  return true;
}
constexpr Rule kSquaredDifference = {Op::kSquare, SquaredDifference};

}  // namespace

std::span<const Rule> PatternRules() {
  static constexpr Rule kRules[] = {
      kPower, kSquaredDifference, {Op::kMul, Op::kDiv, Activation}, {Op::kMul, Op::kDiv, L2}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
