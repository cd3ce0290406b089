// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/optimize/pattern.h"

#include <algorithm>
#include <cmath>

#include "converter/import/tables/composites.h"

namespace fusebox::converter::optimize {
namespace {

constexpr int kDeepestProduct = 6;  // levels of products that are flattened

// Appends the factors of v, and returns their constant part.
double Flatten(const Edit& e, ValueId v, int depth, std::vector<ValueId>& factors) {
  if (const auto number = e.Scalar(v)) return *number;
  const Node* const node = depth < kDeepestProduct ? e.producer(v) : nullptr;
  const auto first = [&] { return Flatten(e, node->operands.front(), depth + 1, factors); };
  if (node && !HasActivation(*node)) {
    const auto by = e.Scalar(node->operands.back());
    if (node->is(Op::kDiv) && by && *by != 0) return first() / *by;
    if (node->is(Op::kSquare)) return first() * first();
    if (node->is(Op::kMul)) return first() * Flatten(e, node->operands.back(), depth + 1, factors);
    if (node->is(Op::kPow) && by == 3.0) {
      factors.insert(factors.end(), 3, node->operands.front());
      return 1;
    }
  }
  factors.push_back(v);
  return 1;
}

struct Matcher {
  const Edit& e;
  Matched matched = {kNoValue, kNoValue};

  bool One(ValueId v, const Pattern& p, std::string_view activation = "NONE") {
    if (p.kind == Pattern::kOp) return Produced(v, p, activation);
    if (activation != "NONE") return false;
    if (p.kind == Pattern::kVar) {
      ValueId& known = matched[static_cast<size_t>(p.number)];
      if (known == kNoValue) known = v;
      return known == v;
    }
    std::vector<ValueId> factors;
    const double number = Flatten(e, v, 0, factors);
    return std::abs(number - p.number) <= 1e-5 * std::abs(p.number) && All(std::move(factors), p.parts, true);
  }

  bool Produced(ValueId v, const Pattern& p, std::string_view activation) {
    if (Has(p.op, kActivation) && activation == "NONE" && One(v, p.parts[0], Name(p.op))) return true;
    const Node* const node = e.producer(v, p.op);
    if (!node || node->attrs.str("fused_activation_function", "NONE") != activation) return false;
    if (!p.composite.empty() && (!IsInternal(*node) || node->name != p.composite)) return false;
    const bool commutes = p.op == Op::kAdd || p.op == Op::kMul || p.op == Op::kMaximum;
    return All({node->operands.begin(), node->operands.end()}, p.parts, commutes);
  }

  bool All(std::vector<ValueId> values, const std::vector<Pattern>& patterns, bool any_order) {
    if (values.size() != patterns.size()) return false;
    if (any_order) std::ranges::sort(values);
    do {
      const Matched before = matched;
      if (std::ranges::equal(values, patterns, [&](ValueId v, const Pattern& p) { return One(v, p); }))
        return true;
      matched = before;
    } while (any_order && std::ranges::next_permutation(values).found);
    return false;
  }
};

}  // namespace

Pattern Pattern::Var(double index) {
  Pattern out(index);
  out.kind = kVar;
  return out;
}

Pattern operator*(const Pattern& a, const Pattern& b) {
  Pattern out(1);
  for (const Pattern& p : {a, b}) {
    if (p.kind != Pattern::kProduct) {
      out.parts.push_back(p);
      continue;
    }
    out.number *= p.number;
    out.parts.insert(out.parts.end(), p.parts.begin(), p.parts.end());
  }
  return out;
}

std::optional<Matched> Match(const Edit& e, ValueId v, const Pattern& pattern) {
  Matcher matcher{e};
  return matcher.One(v, pattern) ? std::optional(matcher.matched) : std::nullopt;
}

}  // namespace fusebox::converter::optimize
