// SPDX-License-Identifier: Apache-2.0
// Binary ops on quantized i8, u8 and i16 with any scales and broadcasting, in integer arithmetic.
#pragma once

#include <string_view>

#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {

enum class QuantizedOp { kNone, kAdd, kSub, kMul, kSquaredDifference, kMaximum, kMinimum, kDiv };

constexpr QuantizedOp QuantizedOpOf(std::string_view name) {
  if (name == "ADD") return QuantizedOp::kAdd;
  if (name == "SUB") return QuantizedOp::kSub;
  if (name == "MUL") return QuantizedOp::kMul;
  if (name == "SQUARED_DIFFERENCE") return QuantizedOp::kSquaredDifference;
  if (name == "MAXIMUM") return QuantizedOp::kMaximum;
  if (name == "MINIMUM") return QuantizedOp::kMinimum;
  if (name == "DIV") return QuantizedOp::kDiv;
  return QuantizedOp::kNone;
}

class QuantizedBinary {
 public:
  QuantizedBinary() = default;
  // For a node that passed Supports.
  QuantizedBinary(const Node& n, QuantizedOp op, Activation activation);
  // Throws Reject. MAXIMUM and MINIMUM require equal quantization of operands and result.
  static void Supports(const Node& n, QuantizedOp op);
  void Run(const Node& n, const BroadcastPlan& plan) const;

 private:
  void RunBytes(const Node& n, const BroadcastPlan& plan) const;
  void RunShorts(const Node& n, const BroadcastPlan& plan) const;
  void Divide(const Node& n, const BroadcastPlan& plan) const;

  QuantizedOp op_ = QuantizedOp::kNone;
  int32_t x_zero_ = 0;
  int32_t y_zero_ = 0;
  int32_t z_zero_ = 0;
  int32_t shift_ = 0;
  FixedPoint x_scale_, y_scale_, z_scale_;
  double quotient_ = 1;
  double x_root_ = 1;
  double y_root_ = 1;
  int32_t lowest_ = 0;
  int32_t highest_ = 0;
};

}  // namespace fusebox::cpu
