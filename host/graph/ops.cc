// SPDX-License-Identifier: Apache-2.0
#include "host/graph/ops.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "host/graph/versions.h"

namespace fusebox {
namespace {

// "input filter* [bias?]"
consteval OperandList Parse(std::string_view text) {
  OperandList out;
  bool may_end = false;
  for (int i = 0; !text.empty(); ++i) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() == text.size() ? word.size() : word.size() + 1);
    may_end |= word.starts_with('[');
    if (word.starts_with('[')) word.remove_prefix(1);
    if (word.ends_with(']')) word.remove_suffix(1);
    const std::string_view name = word.substr(0, word.find_first_of("*?!."));
    const std::string_view marks = word.substr(name.size());
    const bool many = marks.ends_with("...");
    const uint64_t bits = many ? ~uint64_t{0} << i : uint64_t{1} << i;
    if (!may_end) out.min = i + 1;
    out.max = many ? -1 : i + 1;
    if (name == "input") out.data = i;
    if (name == "bias") out.bias = i;
    if (marks.contains('?')) out.optional |= bits;
    if (marks.contains('!')) out.state |= bits;
    if (marks.contains('*')) out.weights |= bits;
  }
  return out;
}

constexpr OpInfo kOps[] = {
#define FUSEBOX_OP(id, NAME, number, table, names, ...) \
  {.op = Op::k##id,                                     \
   .name = NAME,                                        \
   .code = number,                                      \
   .options = table,                                    \
   .operands = Parse(names) __VA_OPT__(, ) __VA_ARGS__},
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
      if (kOps[op].operands.state >> i & 1) all[op].operands[all[op].count++] = i;
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
  // Rows are in the order of their codes (tested).
  if (builtin_code < 0 || static_cast<size_t>(builtin_code) >= std::size(kOps)) return std::nullopt;
  const OpInfo& info = kOps[builtin_code];
  return info.code == builtin_code ? std::optional(info.op) : std::nullopt;
}

std::span<const int> StateOperands(Op op) {
  const StateList& list = kStates[static_cast<size_t>(op)];
  return {list.operands, list.count};
}

}  // namespace fusebox
