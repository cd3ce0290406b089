// SPDX-License-Identifier: Apache-2.0
#include "host/verify/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "host/eval/eval.h"
#include "host/graph/cost.h"

namespace fusebox::verify {
namespace {

class Ways {
 public:
  explicit Ways(const Module& module) : module_(module) {}

  int64_t Longest(const Function& f) {
    const auto [known, fresh] = longest_.try_emplace(f.name, 0);
    if (!fresh) return known->second;  // 0 while it is open: recursion is rejected by Verify
    std::vector<int64_t> before(static_cast<size_t>(f.value_count()), 0);
    for (const auto& node : f.nodes) {
      int64_t way = 0;
      for (const ValueId v : node->operands)
        if (v != kNoValue) way = std::max(way, before[static_cast<size_t>(v)]);
      way += Terms(f, *node) + Called(*node);
      for (const ValueId v : node->results)
        if (v != kNoValue) before[static_cast<size_t>(v)] = way;
    }
    int64_t& longest = known->second;
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
  std::map<std::string, int64_t> longest_;  // by function
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
