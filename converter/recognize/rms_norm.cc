// SPDX-License-Identifier: Apache-2.0
// RMS normalization over the last dimension: x * rsqrt(mean(x * x) + epsilon) * scale, with the factors in
// any order. The composite has the name, operands (x, scale) and attribute that LiteRT uses.
#include <algorithm>
#include <array>

#include "converter/recognize/recognizer.h"

namespace fusebox::converter::recognize {
namespace {

// 1 / sqrt(mean(x * x) + epsilon)
struct InverseRms {
  ValueId x;
  double epsilon;
};

// x of x * x.
ValueId BaseOfSquare(const View& view, ValueId v) {
  if (const Node* square = view.Producer(v, Op::kSquare)) return square->operands[0];
  const Node* product = view.Producer(v, Op::kMul);
  return product && product->operands[0] == product->operands[1] ? product->operands[0] : kNoValue;
}

std::optional<InverseRms> ReadInverseRms(const View& view, ValueId v) {
  const Node* root = view.Producer(v, Op::kRsqrt);
  if (!root) return std::nullopt;
  std::optional<double> epsilon;
  const ValueId sum =
      view.Other(root->operands[0], Op::kAdd, [&](ValueId e) { return bool(epsilon = view.Scalar(e)); });
  const Node* mean = view.Producer(sum, Op::kMean);
  const ValueId x =
      mean && mean->attrs.b("keep_dims", false) ? BaseOfSquare(view, mean->operands[0]) : kNoValue;
  if (x == kNoValue) return std::nullopt;
  const auto axes = view.Ints(mean->operands[1]);
  if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != view.shape(x).rank() - 1))
    return std::nullopt;
  return InverseRms{x, *epsilon};
}

// One element per feature of x.
bool IsScale(const View& view, ValueId scale, ValueId x) {
  const Shape& a = view.shape(scale);
  const Shape& b = view.shape(x);
  return view.type(x).dtype == DType::kF32 && a.rank() == 1 && b.rank() > 0 && a[0] > 0 &&
         a[0] == b[static_cast<size_t>(b.rank() - 1)];
}

}  // namespace

Result<std::optional<Region>> FindRmsNorm(const View& view, const Node& root) {
  if (FusedActivation(root) != "NONE") return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Node* inner = view.Producer(root.operands[i], Op::kMul);
    if (!inner) continue;
    std::array<ValueId, 3> factors = {inner->operands[0], inner->operands[1], root.operands[1 - i]};
    std::ranges::sort(factors);
    do {
      const auto [x, scale, rest] = factors;
      const auto inverse = IsScale(view, scale, x) ? ReadInverseRms(view, rest) : std::nullopt;
      if (!inverse || inverse->x != x) continue;
      Attrs attrs;
      attrs.Set("epsilon", inverse->epsilon);
      return Region{"odml.rms_norm", std::move(attrs), {x, scale}, {root.results[0]}};
    } while (std::ranges::next_permutation(factors).found);
  }
  return std::nullopt;
}

}  // namespace fusebox::converter::recognize
