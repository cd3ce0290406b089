// SPDX-License-Identifier: Apache-2.0
#include "host/graph/ops.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace fusebox {
namespace {

constexpr OpInfo kOps[] = {
#define FUSEBOX_OP(id, NAME, code, options, effects, min_in, max_in, optional_mask, state_mask) \
  {Op::k##id, NAME, code, options, effects, min_in, max_in, optional_mask, state_mask},
#include "host/graph/ops.def"
#undef FUSEBOX_OP
};

struct StateList {
  int operands[4];
  size_t count;
};

constexpr auto kStates = [] {
  std::array<StateList, std::size(kOps)> all{};
  for (size_t op = 0; op < all.size(); ++op) {
    for (int i = 0; i < 64; ++i) {
      if (kOps[op].state >> i & 1) all[op].operands[all[op].count++] = i;
    }
  }
  return all;
}();

}  // namespace

const OpInfo& Info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::span<const OpInfo> AllOps() { return kOps; }

std::optional<Op> FindOp(std::string_view name) {
  static const auto& by_name = *[] {
    auto* map = new std::unordered_map<std::string_view, Op>;
    for (const OpInfo& info : kOps) map->emplace(info.name, info.op);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Op> FindOp(int32_t builtin_code) {
  // The rows stand in the order of their codes; a test holds them to it.
  if (builtin_code < 0 || static_cast<size_t>(builtin_code) >= std::size(kOps)) return std::nullopt;
  const OpInfo& info = kOps[builtin_code];
  return info.code == builtin_code ? std::optional(info.op) : std::nullopt;
}

std::span<const int> StateOperands(Op op) {
  const StateList& list = kStates[static_cast<size_t>(op)];
  return {list.operands, list.count};
}

}  // namespace fusebox
