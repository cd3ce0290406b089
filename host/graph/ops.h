// SPDX-License-Identifier: Apache-2.0
// The vocabulary: one row per op in ops.def, expanded here. Nothing else lists ops by what they do.
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

// Facts of an op that are true or false.
enum Trait : uint32_t {
  kElementwise = 1 << 0,      // a result's element depends on the operands' elements at its place only
  kArithmetic = 1 << 1,       // + - * /
  kActivation = 1 << 2,       // its name is a value of fused_activation_function
  kFusesActivation = 1 << 3,  // all runtimes apply its fused_activation_function; few do for other ops
  kMovesData = 1 << 4,        // results hold elements of the data operand, or of all operands of an open list
  kLinear = 1 << 5,           // f(a + b) = f(a) + f(b) for its data operands
  kReduces = 1 << 6,          // folds elements along the axes that operand 1 holds
  kKeepsOrder = 1 << 7,       // changes nothing if the result has the operand's type
  kHybrid = 1 << 8,           // runs on f32 with 8-bit weights, also in stock TFLite
  kAsymmetricInputs = 1 << 9,  // has the option asymmetric_quantize_inputs, and stock TFLite applies it
  kOneScale = 1 << 10,         // readers from before 2.11 know one scale for its weights, not one per channel
  kDiscrete = 1 << 11,         // a small error of an operand changes a result as a whole
  kRelative = 1 << 12,         // results depend on the relative error of small operands
  kCostly = 1 << 13,           // does more than move, add and multiply, and so gains by 8 bits
  kHost = 1 << 14,             // run by the host itself: the kernel ABI cannot express it
  kList = 1 << 15,             // works on a list of tensors
};

// How an op's results get their 8-bit scale after training.
enum class Quantizes : uint8_t {
  kNone,      // no 8-bit form is used
  kWeighted,  // product with weights, 32-bit bias
  kOwn,       // the result has a scale of its own
  kSame,      // the result has the data operand's scale
  kJoin,      // operands and result share one scale
  kLstm,      // an integer LSTM, calibrated inside
};

// How many terms one element of the result is the sum of.
enum class Sums : uint8_t {
  kOne,
  kRow,            // the last dimension of operand 0
  kAll,            // all of operand 0
  kReduced,        // operand 0's elements per result element
  kWindow,         // filter_height * filter_width
  kProduct,        // the contracted dimension of operand 0
  kFilterRow,      // the last dimension of the weights
  kFilterArea,     // height and width of the weights
  kFilterOfFirst,  // the weights of one output channel, which is their first dimension
  kFilterOfLast,   // the weights of one output channel, which is their last dimension
};

struct FixedScale {
  float scale = 0;  // 0: calibrated
  int zero_point = 0;
};

enum class Op : int16_t {
#define FUSEBOX_OP(id, ...) k##id,
#include "host/graph/ops.def"
#undef FUSEBOX_OP
};

// Numbers of an op's operands, from their names in ops.def.
struct OperandList {
  int min = 0, max = 0;   // how many; max -1: any number
  int data = 0;           // the one that is named "input"
  int bias = -1;          // -1: the op has none
  uint64_t optional = 0;  // bit i: operand i may be absent
  uint64_t state = 0;     // bit i: operand i is updated in place, and has a final-state result
  uint64_t weights = 0;   // bit i: a constant operand i is worth storing in fewer bits

  int first_weights() const { return weights == 0 ? -1 : __builtin_ctzll(weights); }
};

namespace versions {
class Operands;
}

struct OpInfo {
  Op op;
  std::string_view name;     // "CONV_2D"
  int32_t code;              // BuiltinOperator; -1: internal, never written
  std::string_view options;  // table of the option unions ("Conv2DOptions"); empty: none
  OperandList operands;
  Effects effects = Effects::kPure;
  uint32_t traits = 0;    // of Trait
  int channel_axis = -1;  // of the weights: the dimension of output channels, which may have a scale each
  Quantizes quantizes = Quantizes::kNone;
  FixedScale fixed_scale = {};  // of an 8-bit result
  Sums sums = Sums::kOne;
  int (*version)(const versions::Operands&) = nullptr;  // the lowest that says what a node says; null: 1
  int strings_version = 1;                              // the lowest that takes strings
  std::string_view runtimes = {};  // first TFLite release of version 1, 2, ...: "1.13.1 1.14.0"
};

const OpInfo& Info(Op);
std::optional<Op> FindOp(std::string_view name);
std::optional<Op> FindOp(int32_t builtin_code);
std::span<const OpInfo> AllOps();
inline std::string_view Name(Op op) { return Info(op).name; }
inline bool Has(Op op, Trait trait) { return (Info(op).traits & trait) != 0; }
// Numbers of the operands that the op updates in place, ascending.
std::span<const int> StateOperands(Op);

}  // namespace fusebox
