// SPDX-License-Identifier: Apache-2.0
#include "host/graph/versions.h"

#include <algorithm>

namespace fusebox {
namespace versions {

// Operand types for the version rules, by index; kNone if absent.
class Operands {
 public:
  Operands(const Function& function, const Node& node) : function_(function), node_(node) {}
  const Value* at(size_t i) const {
    if (i >= node_.operands.size() || node_.operands[i] == kNoValue) return nullptr;
    return &function_.value(node_.operands[i]);
  }
  DType type(size_t i) const { return at(i) == nullptr ? DType::kNone : at(i)->type.dtype; }
  int rank(size_t i) const { return at(i) == nullptr ? 0 : at(i)->type.shape.rank(); }
  bool is(size_t i, DType dtype) const { return type(i) == dtype; }
  // Float activations with 8-bit weights.
  bool hybrid(size_t weights) const {
    return is(0, DType::kF32) &&
           (is(weights, DType::kI8) || is(weights, DType::kU8) || is(weights, DType::kI4));
  }
  bool per_channel(size_t i) const {
    return at(i) != nullptr && at(i)->quant != nullptr && at(i)->quant->scales.size() > 1;
  }
  size_t count() const { return node_.operands.size(); }
  const Attrs& attrs() const { return node_.attrs; }
  DType result() const {
    return node_.results.empty() || node_.results[0] == kNoValue
               ? DType::kNone
               : function_.value(node_.results[0]).type.dtype;
  }

 private:
  const Function& function_;
  const Node& node_;
};

namespace {

bool Asymmetric(const Operands& in) { return in.attrs().b("asymmetric_quantize_inputs", false); }

bool Grouped(const Operands& in) {
  if (in.rank(0) != 4 || in.rank(1) != 4) return false;
  const int64_t input = in.at(0)->type.shape[3];
  const int64_t filter = in.at(1)->type.shape[3];
  return input > 0 && filter > 0 && input != filter;
}

int Arithmetic(const Operands& in, int wide, int eight_bit) {
  if (in.rank(0) > 4 || in.rank(1) > 4) return wide;
  return in.is(0, DType::kI8) ? eight_bit : 1;
}

}  // namespace

int EightBit(const Operands& in) { return in.is(0, DType::kI8) ? 2 : 1; }

int FullyConnected(const Operands& in) {
  if (in.is(1, DType::kI4)) return 10;
  if (in.is(0, DType::kI16)) return in.is(3, DType::kI32) ? 11 : 7;
  if (in.count() == 2) return 6;
  if (in.attrs().b("keep_num_dims", false)) return 5;
  if (in.is(0, DType::kI8)) return 4;
  if (in.hybrid(1)) return in.per_channel(1) ? 12 : Asymmetric(in) ? 9 : 3;
  return in.attrs().Find("weights_format") != nullptr ? 2 : 1;
}

int Conv2D(const Operands& in) {
  if (in.is(1, DType::kI4)) return 7;
  if (Grouped(in)) return 6;
  if (in.is(0, DType::kI16)) return 4;
  if (in.is(0, DType::kI8)) return 3;
  if (in.hybrid(1)) return in.per_channel(1) ? 5 : 2;
  return 1;
}

int DepthwiseConv2D(const Operands& in) {
  if (in.is(1, DType::kI4)) return 7;
  if (in.is(0, DType::kI16)) return 5;
  if (in.hybrid(1)) return in.per_channel(1) ? 6 : 4;
  if (in.is(0, DType::kI8)) return 3;
  const bool dilated =
      in.attrs().i64("dilation_w_factor", 1) != 1 || in.attrs().i64("dilation_h_factor", 1) != 1;
  return dilated ? 2 : 1;
}

int TransposeConv(const Operands& in) {
  if (in.attrs().Find("fused_activation_function") != nullptr) return 4;
  if (in.at(3) != nullptr) return 3;
  return in.is(2, DType::kI8) || in.is(2, DType::kI16) ? 2 : 1;
}

int Lstm(const Operands& in) {
  if (in.is(0, DType::kI16)) return 5;
  if (in.attrs().str("kernel_type", "FULL") == "BASIC") return 2;
  if (in.hybrid(2)) return Asymmetric(in) ? 4 : 3;
  return 1;
}

int UnidirectionalSequenceLstm(const Operands& in) {
  if (in.is(0, DType::kI16)) return 5;
  if (in.attrs().b("diagonal_recurrent_tensors", false)) return 4;
  if (in.hybrid(2)) return Asymmetric(in) ? 3 : 2;
  return 1;
}

// Version 1 of the bidirectional op supports only time-major.
int BidirectionalSequenceLstm(const Operands& in) {
  if (in.hybrid(2)) return Asymmetric(in) ? 3 : 2;
  return in.attrs().b("time_major", true) ? 1 : 2;
}

int Recurrent(const Operands& in) {
  if (!in.hybrid(1)) return 1;
  return Asymmetric(in) ? 3 : 2;
}

int BatchMatmul(const Operands& in) {
  if (Asymmetric(in) && in.hybrid(1)) return 4;
  return in.is(0, DType::kI16) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
}

int Svdf(const Operands& in) {
  return in.is(0, DType::kI8) ? 3 : in.hybrid(1) ? (Asymmetric(in) ? 4 : 2) : 1;
}

int Sub(const Operands& in) { return Arithmetic(in, 3, 2); }
int Div(const Operands& in) { return Arithmetic(in, 2, 1); }

int Pad(const Operands& in) {
  return in.rank(0) > 4 ? 4 : in.is(0, DType::kI16) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
}

int BroadcastTo(const Operands& in) { return in.is(0, DType::kI8) || in.is(0, DType::kI16) ? 3 : 2; }

int EmbeddingLookup(const Operands& in) {
  return in.is(1, DType::kI4) || in.per_channel(1) ? 4 : in.is(1, DType::kI8) ? 3 : 1;
}

// Version 2 requantizes and supports 16 bits.
int Quantize(const Operands& in) { return in.is(0, DType::kF32) && in.result() != DType::kI16 ? 1 : 2; }

int Dequantize(const Operands& in) {
  return in.is(0, DType::kF16) || in.is(0, DType::kI16) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
}

int FakeQuant(const Operands& in) { return in.attrs().b("narrow_range", false) ? 2 : 1; }

int Gather(const Operands& in) {
  if (in.attrs().i64("batch_dims", 0) != 0) return 5;
  if (in.is(0, DType::kI16)) return 4;
  if (in.is(0, DType::kBool)) return 3;
  return in.is(0, DType::kI8) ? 2 : 1;
}

int Transpose(const Operands& in) {
  if (in.rank(0) > 6) return in.rank(0) > 8 ? 8 : 7;
  if (in.rank(0) == 6) return 6;
  if (in.rank(0) == 5) return 4;
  return in.is(0, DType::kI16) ? 5 : in.is(0, DType::kBool) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
}

int ReverseV2(const Operands& in) { return in.is(0, DType::kI8) ? 3 : in.is(0, DType::kBool) ? 2 : 1; }

int Split(const Operands& in) {
  if (in.is(1, DType::kI16)) return 4;
  return in.is(1, DType::kI32) ? 3 : in.is(1, DType::kI8) ? 2 : 1;
}

}  // namespace versions

int LowestVersion(const Function& function, const Node& node) {
  const versions::Operands in(function, node);
  const OpInfo& info = Info(node.op);
  const bool strings = in.is(node.is(Op::kFill) ? 1 : 0, DType::kString);
  const bool sum = node.is(Op::kAdd) || node.is(Op::kSub);
  const bool words =
      in.is(0, DType::kI16) && in.at(0)->quant != nullptr && !(sum && in.attrs().b("pot_scale_int16", true));
  const int lowest = info.version == nullptr ? 1 : info.version(in);
  return std::max({lowest, strings ? info.strings_version : 1, words ? info.words_version : 1});
}

}  // namespace fusebox
