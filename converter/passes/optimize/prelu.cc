// SPDX-License-Identifier: Apache-2.0
// relu(x) - alpha relu(-x) and max(x, alpha x): PRELU, or LEAKY_RELU where alpha is one number.
#include "converter/passes/optimize/pattern.h"

namespace fusebox::converter::optimize {
namespace {

// MUL itself: in a product alpha would be one of the constant factors.
Pattern Alpha(Pattern of) { return {Op::kMul, {Pattern::Var(1), std::move(of)}}; }
Pattern Relu(Pattern of) { return {Op::kRelu, {std::move(of)}}; }

// Returns whether alpha has one element per element of x, or of some of its last dimensions, but not of the
// batch.
bool FitsAlpha(const Shape& alpha, const Shape& x) {
  if (alpha.rank() < 1 || alpha.rank() >= x.rank()) return false;
  for (int d = 1; d <= alpha.rank(); ++d) {
    const int64_t size = alpha.dims()[static_cast<size_t>(alpha.rank() - d)];
    if (size != 1 && size != x.dims()[static_cast<size_t>(x.rank() - d)]) return false;
  }
  return true;
}

bool ReplaceByLeakyRelu(Edit& e, Node& node, ValueId x, double alpha) {
  e.Replace(node,
            e.Value(Op::kLeakyRelu, {x}, MakeAttrs("alpha", static_cast<double>(static_cast<float>(alpha)))));
  return true;
}

bool Prelu(Edit& e, Node& node) {
  static const Pattern x = Pattern::Var(0);
  static const Pattern kSum = Relu(x) + Alpha(Relu(-x));
  static const Pattern kDifference = Relu(x) - Alpha(Relu(-x));
  if (!e.is_f32(node.results[0])) return false;
  const auto matched = Match(e, node.results[0], node.is(Op::kAdd) ? kSum : kDifference);
  auto alpha = matched ? e.Floats((*matched)[1]) : std::nullopt;
  if (!alpha) return false;
  const auto [of, slope] = *matched;
  if (node.is(Op::kAdd))
    for (double& a : *alpha) a = -a;
  if (alpha->size() == 1 && e.rank(slope) <= e.rank(of)) return ReplaceByLeakyRelu(e, node, of, (*alpha)[0]);
  Shape shape = e.shape(slope);
  if (shape.rank() == e.rank(of) && shape.rank() > 1 && shape[0] == 1)
    shape.dims().erase(shape.dims().begin());
  if (!FitsAlpha(shape, e.shape(of))) return false;
  e.Replace(node, e.Value(Op::kPrelu, {of, e.F32(shape, *alpha)}));
  return true;
}

bool Leaky(Edit& e, Node& node) {
  static const Pattern x = Pattern::Var(0);
  static const Pattern kPattern = {Op::kMaximum, {x, Alpha(x)}};
  const auto matched = Match(e, node.results[0], kPattern);
  const auto alpha = matched ? e.Scalar((*matched)[1]) : std::nullopt;
  if (!alpha || *alpha < 0 || *alpha > 1) return false;
  const auto [of, slope] = *matched;
  return e.is_f32(of) && e.rank(slope) <= e.rank(of) && ReplaceByLeakyRelu(e, node, of, *alpha);
}

}  // namespace

std::span<const Rule> PreluRules() {
  static constexpr Rule kRules[] = {{Op::kAdd, Op::kSub, Prelu}, {Op::kMaximum, Leaky}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
