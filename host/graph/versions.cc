// SPDX-License-Identifier: Apache-2.0
#include "host/graph/versions.h"

#include <algorithm>

namespace fusebox {
namespace {

// The types that the version rules ask about, by operand number; kNone where the operand is absent.
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

bool Asymmetric(const Operands& in) { return in.attrs().b("asymmetric_quantize_inputs", false); }

int FullyConnected(const Operands& in) {
  if (in.is(1, DType::kI4)) return 10;
  if (in.is(0, DType::kI16)) return in.is(3, DType::kI32) ? 11 : 7;
  if (in.count() == 2) return 6;
  if (in.attrs().b("keep_num_dims", false)) return 5;
  if (in.is(0, DType::kI8)) return 4;
  if (in.hybrid(1)) return in.per_channel(1) ? 12 : Asymmetric(in) ? 9 : 3;
  return in.attrs().Find("weights_format") != nullptr ? 2 : 1;
}

bool Grouped(const Operands& in) {
  if (in.rank(0) != 4 || in.rank(1) != 4) return false;
  const int64_t input = in.at(0)->type.shape[3], filter = in.at(1)->type.shape[3];
  return input > 0 && filter > 0 && input != filter;
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

// Version 1 of the bidirectional op knows time-major only.
int BidirectionalSequenceLstm(const Operands& in) {
  if (in.hybrid(2)) return Asymmetric(in) ? 3 : 2;
  return in.attrs().b("time_major", true) ? 1 : 2;
}

int RecurrentOfOne(const Operands& in, size_t weights) {
  if (!in.hybrid(weights)) return 1;
  return Asymmetric(in) ? 3 : 2;
}

int BatchMatmul(const Operands& in) {
  if (Asymmetric(in) && in.hybrid(1)) return 4;
  return in.is(0, DType::kI16) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
}

int Arithmetic(const Operands& in, int wide, int eight_bit) {
  if (in.rank(0) > 4 || in.rank(1) > 4) return wide;
  return in.is(0, DType::kI8) ? eight_bit : 1;
}

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

int Split(const Operands& in) {
  if (in.is(1, DType::kI16)) return 4;
  return in.is(1, DType::kI32) ? 3 : in.is(1, DType::kI8) ? 2 : 1;
}

// Ops whose second version is the one with 8-bit signed operands, and nothing else.
bool EightBitIsTwo(Op op) {
  static constexpr Op kOps[] = {
      Op::kAdd,
      Op::kMul,
      Op::kAveragePool2D,
      Op::kMaxPool2D,
      Op::kL2Normalization,
      Op::kLogistic,
      Op::kTanh,
      Op::kRelu,
      Op::kRelu6,
      Op::kReluN1To1,
      Op::kSoftmax,
      Op::kLogSoftmax,
      Op::kMean,
      Op::kConcatenation,
      Op::kPadV2,
      Op::kSlice,
      Op::kStridedSlice,
      Op::kMaximum,
      Op::kMinimum,
      Op::kDequantize,
      Op::kResizeBilinear,
      Op::kResizeNearestNeighbor,
      Op::kSpaceToDepth,
      Op::kSpaceToBatchNd,
      Op::kBatchToSpaceNd,
      Op::kTopkV2,
      Op::kArgMax,
      Op::kArgMin,
      Op::kLess,
      Op::kLessEqual,
      Op::kGreater,
      Op::kGreaterEqual,
      Op::kEqual,
      Op::kNotEqual,
      Op::kSum,
      Op::kReduceMax,
      Op::kReduceMin,
      Op::kPack,
      Op::kMirrorPad,
      Op::kSelect,
      Op::kLeakyRelu,
      Op::kTile,
      Op::kReduceProd,
      Op::kSplitV,
      Op::kDepthToSpace,
      Op::kUnpack,
      Op::kFakeQuant,
  };
  return std::ranges::find(kOps, op) != std::end(kOps);
}

// The version of an op that moves or compares strings; 1 of one that stock TFLite lets do neither.
int WithStrings(Op op) {
  switch (op) {
    case Op::kFill:
    case Op::kGather:
    case Op::kGatherNd:
    case Op::kSqueeze:
    case Op::kTile: return 2;
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kSlice: return 3;
    case Op::kStridedSlice: return 5;
    default: return 1;
  }
}

int ByType(Op op, const Operands& in) {
  const bool eight = in.is(0, DType::kI8);
  switch (op) {
    case Op::kQuantize:
      // The second version requantises and takes 16 bits.
      return in.is(0, DType::kF32) && in.result() != DType::kI16 ? 1 : 2;
    case Op::kDequantize: return in.is(0, DType::kF16) || in.is(0, DType::kI16) ? 3 : eight ? 2 : 1;
    case Op::kLeakyRelu:
    case Op::kRelu:
    case Op::kPack:
    case Op::kSelect: return eight ? 2 : 1;
    case Op::kFakeQuant: return in.attrs().b("narrow_range", false) ? 2 : 1;
    default: return EightBitIsTwo(op) && eight ? 2 : 1;
  }
}

int ByOp(const Node& node, const Operands& in) {
  switch (node.op) {
    case Op::kFullyConnected: return FullyConnected(in);
    case Op::kConv2D: return Conv2D(in);
    case Op::kDepthwiseConv2D: return DepthwiseConv2D(in);
    case Op::kTransposeConv: return TransposeConv(in);
    case Op::kLstm: return Lstm(in);
    case Op::kUnidirectionalSequenceLstm: return UnidirectionalSequenceLstm(in);
    case Op::kBidirectionalSequenceLstm: return BidirectionalSequenceLstm(in);
    case Op::kRnn:
    case Op::kUnidirectionalSequenceRnn:
    case Op::kBidirectionalSequenceRnn: return RecurrentOfOne(in, 1);
    case Op::kSvdf: return in.is(0, DType::kI8) ? 3 : in.hybrid(1) ? (Asymmetric(in) ? 4 : 2) : 1;
    case Op::kBroadcastTo: return in.is(0, DType::kI8) || in.is(0, DType::kI16) ? 3 : 2;
    case Op::kBatchMatmul: return BatchMatmul(in);
    case Op::kSub: return Arithmetic(in, 3, 2);
    case Op::kDiv: return Arithmetic(in, 2, 1);
    case Op::kPad: return in.rank(0) > 4 ? 4 : in.is(0, DType::kI16) ? 3 : in.is(0, DType::kI8) ? 2 : 1;
    case Op::kTranspose: return Transpose(in);
    case Op::kGather: return Gather(in);
    case Op::kSplit: return Split(in);
    case Op::kEmbeddingLookup:
      return in.is(1, DType::kI4) || in.per_channel(1) ? 4 : in.is(1, DType::kI8) ? 3 : 1;
    default: return ByType(node.op, in);
  }
}

}  // namespace

int LowestVersion(const Function& function, const Node& node) {
  const Operands in(function, node);
  const bool strings = in.is(node.is(Op::kFill) ? 1 : 0, DType::kString);
  return std::max(strings ? WithStrings(node.op) : 1, ByOp(node, in));
}

std::string_view MinRuntime(Op op, int version) {
  struct Row {
    Op op;
    int version;
    std::string_view runtime;
  };
  static constexpr Row kRows[] = {
      {Op::kUnidirectionalSequenceLstm, 1, "1.13.1"},
      {Op::kUnidirectionalSequenceLstm, 2, "1.14.0"},
      {Op::kUnidirectionalSequenceLstm, 3, "2.3.0"},
      {Op::kUnidirectionalSequenceLstm, 4, "2.12.0"},
      {Op::kBidirectionalSequenceLstm, 1, "1.14.0"},
      {Op::kBidirectionalSequenceLstm, 2, "1.14.0"},
      {Op::kBidirectionalSequenceLstm, 3, "2.3.0"},
      {Op::kLstm, 1, "1.7.0"},
      {Op::kLstm, 2, "1.10.0"},
      {Op::kLstm, 3, "1.14.0"},
      {Op::kLstm, 4, "2.3.0"},
      {Op::kGelu, 1, "2.9.0"},
      {Op::kStablehloComposite, 1, "2.17.0"},
  };
  for (const Row& row : kRows) {
    if (row.op == op && row.version == version) return row.runtime;
  }
  return {};
}

}  // namespace fusebox
