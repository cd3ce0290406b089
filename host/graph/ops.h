// SPDX-License-Identifier: Apache-2.0
// Op table: one row per op in ops.def. No other code classifies ops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusebox {

enum class Effects : uint8_t {
  kPure,      // depends only on operands and attributes: may be folded, moved, shared, removed
  kRandom,    // pure except for randomness: may be removed, not folded or shared
  kStateful,  // reads or writes state: keeps its position
  kControl,   // calls functions: has their effects
};

// Boolean properties of an op.
enum Trait : uint32_t {
  kElementwise = 1 << 0,      // a result's element depends only on the operands' elements at its position
  kArithmetic = 1 << 1,       // + - * /
  kActivation = 1 << 2,       // its name is a value of fused_activation_function
  kFusesActivation = 1 << 3,  // all runtimes apply its fused_activation_function; for other ops few do
  kMovesData = 1 << 4,        // results hold elements of the data operand, or of all operands of an open list
  kLinear = 1 << 5,           // f(a + b) = f(a) + f(b) for its data operands
  kReduces = 1 << 6,          // folds elements along the axes that operand 1 holds
  kKeepsOrder = 1 << 7,       // changes nothing if the result has the operand's type
  kHybrid = 1 << 8,           // runs on f32 with 8-bit weights, also in stock TFLite
  kAsymmetricInputs = 1 << 9,  // has the option asymmetric_quantize_inputs, and stock TFLite applies it
  kOneScale = 1 << 10,         // readers before 2.11 support one scale for its weights, not one per channel
  kDiscrete = 1 << 11,         // a small error of an operand may change a result completely
  kRelative = 1 << 12,         // results depend on the relative error of small operands
  kCostly = 1 << 13,           // more than moves, additions and multiplications, so 8 bits are faster
  kHost = 1 << 14,             // runs in the host itself: the kernel ABI cannot express it
  kList = 1 << 15,             // works on a list of tensors
};

// How post-training quantization chooses the 8-bit scale of an op's results.
enum class Quantizes : uint8_t {
  kNone,      // no 8-bit form
  kWeighted,  // product with weights, 32-bit bias
  kOwn,       // a separate scale
  kSame,      // the scale of the data operand
  kJoin,      // one scale for operands and result
  kLstm,      // an integer LSTM, calibrated inside
};

// Number of terms in the sum for one element of the result.
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

// Operand indices by role, parsed from the names in ops.def.
struct OperandList {
  int min = 0;
  int max = 0;            // -1: any number
  int data = 0;           // the one named "input"
  int bias = -1;          // -1: the op has none
  uint64_t optional = 0;  // bit i: operand i may be absent
  uint64_t state = 0;     // bit i: operand i is updated in place, and has a final-state result
  uint64_t weights = 0;   // bit i: constant operand i is a weight to compress

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
  int channel_axis = -1;  // dimension of output channels of the weights, which may have a scale each
  Quantizes quantizes = Quantizes::kNone;
  FixedScale fixed_scale = {};  // of an 8-bit result; a 16-bit one has 1/32768
  Sums sums = Sums::kOne;
  int (*version)(const versions::Operands&) = nullptr;  // the lowest op version for a node; null: 1
  // The lowest op version with quantized i16, and for ADD and SUB with scales that are no powers of two.
  int words_version = 1;
  int strings_version = 1;  // the lowest op version with strings
};

const OpInfo& Info(Op);
std::optional<Op> FindOp(std::string_view name);
std::optional<Op> FindOp(int32_t builtin_code);
std::span<const OpInfo> AllOps();
inline std::string_view Name(Op op) { return Info(op).name; }
inline bool Has(Op op, Trait trait) { return (Info(op).traits & trait) != 0; }
// Indices of the operands that the op updates in place, ascending.
std::span<const int> StateOperands(Op);

}  // namespace fusebox
