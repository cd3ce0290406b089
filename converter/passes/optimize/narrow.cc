// SPDX-License-Identifier: Apache-2.0
// Narrows integers that are computed in 64 bits and then cut to 32, mostly sizes: they are computed in 32
// bits from the start. The lower half of a sum, difference or product does not depend on the upper halves of
// its operands, so the result of the cut is the same.
#include <map>
#include <set>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

constexpr int kDeepestCut = 32;  // ops between the cut and where the numbers come from

// Returns how many operands, the first ones, determine the result in 32 bits as in 64, or nothing if the op
// has no such form.
std::optional<size_t> Carried(const Node& node) {
  if (Has(node.op, kMovesData) && node.results.size() == 1)
    return Info(node.op).operands.max < 0 ? node.operands.size() : 1;
  const bool sums = node.is(Op::kAdd) || node.is(Op::kSub) || node.is(Op::kMul);
  return sums && !HasActivation(node) ? std::optional(node.operands.size()) : std::nullopt;
}

class Narrower {
 public:
  explicit Narrower(Edit& e) : e_(e) {}

  // All that the value is made of is a size, a constant, or was widened from 32 bits.
  bool Can(ValueId v, int depth = 0) {
    if (depth > kDeepestCut || e_.type(v).dtype != DType::kI64) return false;
    if (e_.is_const(v) || can_.contains(v)) return true;
    const Node* const made = e_.producer(v);
    if (!made) return false;
    if (made->is(Op::kShape)) return true;
    if (made->is(Op::kCast)) return e_.type(made->operands[0]).dtype == DType::kI32;
    const auto carried = Carried(*made);
    for (size_t i = 0; carried && i < *carried; ++i)
      if (!Can(made->operands[i], depth + 1)) return false;
    if (carried) can_.insert(v);
    return carried.has_value();
  }

  ValueId Do(ValueId v) {
    if (const auto known = done_.find(v); known != done_.end()) return known->second;
    return done_[v] = Made(v);
  }

 private:
  ValueId Made(ValueId v) {
    if (e_.is_const(v)) {
      std::vector<int32_t> lower;
      const auto values = e_.Ints(v);
      for (const int64_t value : *values) lower.push_back(static_cast<int32_t>(value));
      return e_.f().AddConst(DType::kI32, e_.shape(v), std::move(lower), e_.f().value(v).name);
    }
    const Node& made = *e_.producer(v);
    if (made.is(Op::kCast)) return made.operands[0];
    Attrs attrs = made.attrs;
    if (made.is(Op::kShape)) attrs.Set("out_type", DType::kI32);
    ValueIds operands = made.operands;
    const size_t carried = made.is(Op::kShape) ? 0 : *Carried(made);
    const Op op = made.op;
    for (size_t i = 0; i < carried; ++i) operands[i] = Do(operands[i]);
    return e_.Value(op, std::move(operands), std::move(attrs));
  }

  Edit& e_;
  std::set<ValueId> can_;
  std::map<ValueId, ValueId> done_;
};

bool Narrow(Edit& e, Node& node) {
  const ValueId x = node.operands[0];
  if (e.is_const(x) || e.type(node.results[0]).dtype != DType::kI32) return false;
  Narrower narrower(e);
  if (!narrower.Can(x)) return false;
  e.Replace(node, narrower.Do(x));
  return true;
}

}  // namespace

std::span<const Rule> NarrowRules() {
  static constexpr Rule kRules[] = {{Op::kCast, Narrow}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
