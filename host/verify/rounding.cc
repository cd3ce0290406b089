// SPDX-License-Identifier: Apache-2.0
#include "host/verify/rounding.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "host/eval/eval.h"

namespace fusebox::verify {
namespace {

// 1 if unknown.
int64_t Count(const Type& type) { return std::max<int64_t>(type.shape.element_count().value_or(1), 1); }

int64_t Size(const Type& type, int64_t dim) {
  if (!type.shape.ranked()) return 1;
  const auto rank = static_cast<int64_t>(type.shape.dims().size());
  const int64_t at = dim < 0 ? dim + rank : dim;
  return at < 0 || at >= rank ? 1 : std::max<int64_t>(type.shape[static_cast<size_t>(at)], 1);
}

// The number of terms in the sum for one element of the node's result.
int64_t Terms(const Function& f, const Node& node) {
  const auto type = [&](size_t i) {
    return i < node.operands.size() && node.operands[i] != kNoValue ? f.value(node.operands[i]).type : Type{};
  };
  switch (Info(node.op).sums) {
    case Sums::kOne: return 1;
    case Sums::kRow: return Size(type(0), -1);
    case Sums::kAll: return Count(type(0));
    case Sums::kReduced: return std::max<int64_t>(Count(type(0)) / Count(f.value(node.results[0]).type), 1);
    case Sums::kWindow:
      return std::max<int64_t>(node.attrs.i64("filter_height", 1) * node.attrs.i64("filter_width", 1), 1);
    case Sums::kProduct: return Size(type(0), node.attrs.b("adj_x", false) ? -2 : -1);
    case Sums::kFilterRow: return Size(type(1), -1);
    case Sums::kFilterArea: return Size(type(1), 1) * Size(type(1), 2);
    case Sums::kFilterOfFirst: return Count(type(1)) / Size(type(1), 0);
    case Sums::kFilterOfLast: return Count(type(1)) / Size(type(1), -1);
  }
  return 1;
}

class Ways {
 public:
  explicit Ways(const Module& module) : module_(module) {}

  int64_t Longest(const Function& f) {
    if (!open_.insert(f.name).second) return 0;  // recursive: rejected by Verify
    std::vector<int64_t> before(static_cast<size_t>(f.value_count()), 0);
    for (const auto& node : f.nodes) {
      int64_t way = 0;
      for (const ValueId v : node->operands)
        if (v != kNoValue) way = std::max(way, before[static_cast<size_t>(v)]);
      way += Terms(f, *node) + Called(*node);
      for (const ValueId v : node->results)
        if (v != kNoValue) before[static_cast<size_t>(v)] = way;
    }
    open_.erase(f.name);
    int64_t longest = 0;
    for (const ValueId v : f.outputs) longest = std::max(longest, before[static_cast<size_t>(v)]);
    return longest;
  }

 private:
  int64_t Called(const Node& node) {
    int64_t longest = 0;
    if (!Has(node.op, kHost)) return longest;
    const auto names = Callees(module_, node);
    if (!names) return longest;
    for (const std::string& name : *names)
      if (const Function* callee = module_.Find(name)) longest = std::max(longest, Longest(*callee));
    return longest;
  }

  const Module& module_;
  std::set<std::string> open_;
};

}  // namespace

int64_t Roundings(const Module& module, const Function& f) { return Ways(module).Longest(f); }

double RelativeError(int64_t roundings) {
  const double sum = static_cast<double>(roundings) * 0x1p-24;
  return sum < 0.5 ? sum / (1 - sum) : 1;
}

Tensor Nudged(const Tensor& t, double relative, uint64_t seed) {
  if (t.type.dtype != DType::kF32 || !t.data) return t;
  std::mt19937_64 random(seed);
  const auto from = t.data.As<float>();
  return {t.type, Buffer::Make(from.size_bytes(), [&](std::span<std::byte> out) {
            auto* to = reinterpret_cast<float*>(out.data());
            for (size_t i = 0; i < from.size(); ++i) {
              const double off = random() % 2 ? relative : -relative;
              // Products with these are exact, and bodies compare with them.
              const bool exact = from[i] == 0 || std::fabs(from[i]) == 1 || !std::isfinite(from[i]);
              to[i] = exact ? from[i] : static_cast<float>(from[i] * (1 + off));
            }
          })};
}

}  // namespace fusebox::verify
