// SPDX-License-Identifier: Apache-2.0
// relu(x) - alpha relu(-x) and max(x, alpha x): PRELU, or LEAKY_RELU where alpha is one number.
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

// c and x of c * RELU(NEG(x)).
struct Negative {
  ValueId alpha, x;
};
std::optional<Negative> NegativePart(const Edit& e, ValueId v) {
  const Node* const product = e.producer(v, Op::kMul);
  if (!product || HasActivation(*product)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Node* const relu = e.producer(product->operands[i], Op::kRelu);
    const Node* const negated = relu ? e.producer(relu->operands[0], Op::kNeg) : nullptr;
    if (negated && e.Floats(product->operands[1 - i]))
      return Negative{product->operands[1 - i], negated->operands[0]};
  }
  return std::nullopt;
}

// Is alpha one per element of x, or of some of its last dimensions? The batch has none of its own.
bool Fits(const Shape& alpha, const Shape& x) {
  if (alpha.rank() < 1 || alpha.rank() >= x.rank()) return false;
  for (int d = 1; d <= alpha.rank(); ++d) {
    const int64_t size = alpha.dims()[static_cast<size_t>(alpha.rank() - d)];
    if (size != 1 && size != x.dims()[static_cast<size_t>(x.rank() - d)]) return false;
  }
  return true;
}

void ReplaceByLeakyRelu(Edit& e, Node& node, ValueId x, double alpha) {
  e.Replace(node, e.Value(Op::kLeakyRelu, {x}, MakeAttrs("alpha", static_cast<double>(static_cast<float>(alpha)))));
}

// A node that is RELU of x and nothing more.
bool IsRelu(const Edit& e, ValueId v, ValueId x) {
  const Node* const relu = e.producer(v, Op::kRelu);
  return relu && relu->operands[0] == x;
}

bool Prelu(Edit& e, Node& node) {
  if (HasActivation(node) || !e.is_f32(node.results[0])) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (node.is(Op::kSub) && i == 1) continue;
    const auto negative = NegativePart(e, node.operands[1 - i]);
    if (!negative || !IsRelu(e, node.operands[i], negative->x)) continue;
    const ValueId x = negative->x;
    std::vector<double> alpha = *e.Floats(negative->alpha);
    if (node.is(Op::kAdd))
      for (double& a : alpha) a = -a;
    if (alpha.size() == 1 && e.rank(negative->alpha) <= e.rank(x))
      return ReplaceByLeakyRelu(e, node, x, alpha[0]), true;
    Shape shape = e.shape(negative->alpha);
    if (shape.rank() == e.rank(x) && shape.rank() > 1 && shape[0] == 1)
      shape.dims().erase(shape.dims().begin());
    if (!Fits(shape, e.shape(x))) continue;
    e.Replace(node, e.Value(Op::kPrelu, {x, e.F32(shape, alpha)}));
    return true;
  }
  return false;
}

bool Leaky(Edit& e, Node& node) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = node.operands[i];
    const Node* const product = e.producer(node.operands[1 - i], Op::kMul);
    if (!e.is_f32(x) || !product || HasActivation(*product)) continue;
    for (size_t side = 0; side < 2; ++side) {
      const auto alpha = e.Scalar(product->operands[1 - side]);
      if (product->operands[side] != x || !alpha || *alpha < 0 || *alpha > 1) continue;
      if (e.rank(product->operands[1 - side]) > e.rank(x)) continue;
      return ReplaceByLeakyRelu(e, node, x, *alpha), true;
    }
  }
  return false;
}

}  // namespace

std::span<const Rule> PreluRules() {
  static constexpr Rule kRules[] = {{Op::kAdd, Op::kSub, Prelu}, {Op::kMaximum, Leaky}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
