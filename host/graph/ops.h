// SPDX-License-Identifier: Apache-2.0
// The vocabulary: one row per op in ops.def, expanded here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusebox {

enum class Effects : uint8_t {
  kPure,      // value depends on operands and attributes alone: may be folded, moved, shared, dropped
  kRandom,    // pure but for randomness: may be dropped, not folded or shared
  kStateful,  // reads or writes state: keeps its place
  kControl,   // runs functions: as its functions are
};

enum class Op : int16_t {
#define FUSEBOX_OP(id, NAME, code, options, effects, min_in, max_in, optional_mask, state_mask) k##id,
#include "host/graph/ops.def"
#undef FUSEBOX_OP
};

struct OpInfo {
  Op op;
  std::string_view name;     // "CONV_2D"
  int32_t code;              // BuiltinOperator; -1: internal, never written
  std::string_view options;  // table of the option unions ("Conv2DOptions"); empty: none
  Effects effects;
  int min_operands, max_operands;  // -1: any number
  uint64_t optional;               // bit i: operand i may be absent
  uint64_t state;                  // bit i: operand i is updated in place, and has a final-state result
};

const OpInfo& Info(Op);
std::optional<Op> FindOp(std::string_view name);
std::optional<Op> FindOp(int32_t builtin_code);
std::span<const OpInfo> AllOps();
inline std::string_view Name(Op op) { return Info(op).name; }
// Numbers of the operands that the op updates in place, ascending.
std::span<const int> StateOperands(Op);

}  // namespace fusebox
