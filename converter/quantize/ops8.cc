// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {

std::optional<WeightedForm> FormOf(const Node& node) {
  switch (node.op) {
    // Readers of before 2.11 know one scale for FULLY_CONNECTED only.
    case Op::kFullyConnected: return WeightedForm{0, 1, 2, -1};
    case Op::kConv2D: return WeightedForm{0, 1, 2, 0};
    case Op::kDepthwiseConv2D: return WeightedForm{0, 1, 2, 3};
    case Op::kTransposeConv: return WeightedForm{2, 1, 3, 0};
    default: return std::nullopt;
  }
}

Role8 Role(const Node& node) {
  if (FormOf(node)) return Role8::kWeighted;
  switch (node.op) {
    case Op::kLstm:
    case Op::kUnidirectionalSequenceLstm: return Role8::kLstm;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMean:
    case Op::kSum:
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kReluN1To1:
    case Op::kLeakyRelu:
    case Op::kPrelu:
    case Op::kHardSwish:
    case Op::kElu:
    case Op::kSoftmax:
    case Op::kLogSoftmax:
    case Op::kLogistic:
    case Op::kTanh:
    case Op::kL2Normalization: return Role8::kOwn;
    case Op::kAveragePool2D:
    case Op::kMaxPool2D:
    case Op::kReshape:
    case Op::kSqueeze:
    case Op::kExpandDims:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kStridedSlice:
    case Op::kPad:
    case Op::kMirrorPad:
    case Op::kTile:
    case Op::kGather:
    case Op::kSplit:
    case Op::kSplitV:
    case Op::kUnpack:
    case Op::kReduceMax:
    case Op::kReduceMin:
    case Op::kResizeBilinear:
    case Op::kResizeNearestNeighbor:
    case Op::kSpaceToDepth:
    case Op::kDepthToSpace:
    case Op::kSpaceToBatchNd:
    case Op::kBatchToSpaceNd:
    case Op::kArgMax:
    case Op::kArgMin: return Role8::kSame;
    case Op::kConcatenation:
    case Op::kPack:
    case Op::kMaximum:
    case Op::kMinimum: return Role8::kJoin;
    default: return Role8::kNone;
  }
}

size_t DataOperand(const Node& node) { return node.is(Op::kSplit) ? 1 : 0; }

std::optional<std::pair<float, int64_t>> FixedScale(const Node& node) {
  switch (node.op) {
    case Op::kSoftmax:
    case Op::kLogistic: return std::pair(1.0f / 256, int64_t{-128});
    case Op::kTanh:
    case Op::kL2Normalization: return std::pair(1.0f / 128, int64_t{0});
    case Op::kLogSoftmax: return std::pair(16.0f / 256, int64_t{127});
    default: return std::nullopt;
  }
}

}  // namespace fusebox::converter::quantize
