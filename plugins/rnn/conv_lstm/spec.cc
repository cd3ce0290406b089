// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/conv_lstm/spec.h"

#include <algorithm>
#include <limits>

namespace fusebox::rnn {
namespace {

// Sizes, products of which fit into 64 bits.
constexpr int64_t kMostTaps = int64_t{1} << 16;
constexpr int64_t kLargestStep = std::numeric_limits<int32_t>::max();

// A list of one number per spatial dimension; ones if it is absent.
Space StepsOption(const Node& node, std::string_view key, size_t space) {
  Space out{1, 1, 1};
  const auto values = node.attrs().i64s(key);
  if (values.empty()) return out;
  const std::string subject = "attr " + std::string(key);
  if (values.size() != space)
    throw Reject{"ATTR",
                 "has " + std::to_string(values.size()) + " numbers, expected " + std::to_string(space),
                 subject};
  for (size_t d = 0; d < space; ++d) {
    out[3 - space + d] = values[d];
    if (values[d] < 1 || values[d] > kLargestStep)
      throw Reject{"ATTR", "has the number " + std::to_string(values[d]), subject};
  }
  return out;
}

bool IsSame(const Node& node) {
  const std::string_view padding = node.attrs().s("padding", "VALID");
  if (padding != "SAME" && padding != "VALID")
    throw Reject{"ATTR", "is " + std::string(padding) + ", expected SAME or VALID", "attr padding"};
  return padding == "SAME";
}

// Sets size and padding of the result where the input is known.
void SetOutput(Convolution& c, bool same) {
  for (size_t d = 0; d < 3; ++d) {
    if (c.in[d] < 0) {
      c.out[d] = -1;
      continue;
    }
    const int64_t reach = c.reach(d);
    const int64_t stride = c.strides[d];
    c.out[d] =
        same ? (c.in[d] + stride - 1) / stride : std::max<int64_t>(c.in[d] - reach + stride, 0) / stride;
    if (same) c.before[d] = std::max<int64_t>((c.out[d] - 1) * stride + reach - c.in[d], 0) / 2;
  }
}

// i8: constant, symmetric, one scale or one per row.
bool CheckConvWeights(const Node& node, uint32_t operand, fbx_dtype dtype) {
  RequirePresent(node, operand);
  if (dtype != FBX_F32 || !IsInt8(node, operand)) {
    RequireType(node, operand, dtype);
    return false;
  }
  RequireConstant(node, operand);
  const fbx_quant* const quant = node.in(operand).quant();
  const auto rows = static_cast<size_t>(node.in(operand).dim(0));
  if (quant == nullptr || (quant->count != 1 && (quant->count != rows || quant->axis != 0)))
    RejectOperand("QUANT", "has neither one scale nor one per row", operand);
  for (size_t i = 0; i < quant->count; ++i)
    if (!std::isfinite(quant->scales[i]) || quant->zero_points[i] != 0)
      RejectOperand("QUANT", "is not symmetric", operand);
  return true;
}

}  // namespace

ConvLstmSpec::ConvLstmSpec(const Node& node) {
  if (node.in_count() != kConvMask) RequireCount(node.in_count(), kConvOperands, "operands");
  sequence = node.attrs().b("sequence", true);
  go_backwards = node.attrs().b("go_backwards", false);
  zero_output = node.attrs().b("zero_output_for_mask", false);
  activation = ActivationOption(node, "activation", "tanh");
  gate_activation = ActivationOption(node, "recurrent_activation", "sigmoid");
  dtype = FloatInput(node);
  ReadWeights(node);
  ReadSpace(node);
  ReadMask(node);
  constant_weights = ConstantOperands(node, kConvWeights, kConvMask);
}

void ConvLstmSpec::ReadWeights(const Node& node) {
  i8_weights = CheckConvWeights(node, kConvWeights, dtype);
  if (CheckConvWeights(node, kConvRecurrent, dtype) != i8_weights)
    RejectOperand("DTYPE", "is not of the type of the input weights", kConvRecurrent);
  const int rank = node.in(kConvWeights).rank();
  if (rank < 3 || rank > 5)
    RejectOperand("RANK",
                  rank < 0 ? "has an unknown rank" : "has rank " + std::to_string(rank) + ", expected 3 to 5",
                  kConvWeights);
  space = static_cast<size_t>(rank) - 2;
  RequireRank(node, kConvRecurrent, rank);
  RequireOperand(node, kConvBias, 1, dtype);
  RequireOperand(node, kConvInput, rank + 1, dtype);
  for (const uint32_t state : {kConvH, kConvC}) RequireOperand(node, state, rank, dtype);
  FitSize(node, kConvBias, 0, &cells, kConvGates);
  for (const uint32_t weights : {kConvWeights, kConvRecurrent}) FitSize(node, weights, 0, &cells, kConvGates);
  FitSize(node, kConvRecurrent, rank - 1, &cells);
  FitSize(node, kConvWeights, rank - 1, &of_x.channels);
  FitSize(node, kConvInput, rank, &of_x.channels);
  if (cells < 1 || of_x.channels < 1)
    RejectOperand(
        "SHAPE", "has " + std::to_string(cells) + " cells and " + std::to_string(of_x.channels) + " channels",
        kConvWeights);
  of_h.channels = cells;
}

void ConvLstmSpec::Fit(const Node& node, uint32_t operand, int first, Space& sizes) {
  for (size_t d = 3 - space; d < 3; ++d)
    FitSize(node, operand, first + static_cast<int>(d + space) - 3, &sizes[d]);
}

void ConvLstmSpec::ReadSpace(const Node& node) {
  for (size_t d = 3 - space; d < 3; ++d) of_x.in[d] = of_x.kernel[d] = of_h.kernel[d] = -1;
  of_x.strides = StepsOption(node, "strides", space);
  of_x.dilations = StepsOption(node, "dilations", space);
  Fit(node, kConvWeights, 1, of_x.kernel);
  Fit(node, kConvRecurrent, 1, of_h.kernel);
  for (const uint32_t weights : {kConvWeights, kConvRecurrent}) {
    const Convolution& c = weights == kConvWeights ? of_x : of_h;
    for (const int64_t size : c.kernel)
      if (size < 1 || size > kMostTaps)
        RejectOperand("SHAPE", "has a kernel of the size " + std::to_string(size), weights);
  }
  FitSize(node, kConvInput, 0, &batch);
  FitSize(node, kConvInput, 1, &steps);
  Fit(node, kConvInput, 2, of_x.in);
  SetOutput(of_x, IsSame(node));
  for (const uint32_t state : {kConvH, kConvC}) {
    FitSize(node, state, 0, &batch);
    Fit(node, state, 1, of_x.out);
    FitSize(node, state, static_cast<int>(space) + 1, &cells);
  }
  of_h.in = of_x.out;
  SetOutput(of_h, true);
}

void ConvLstmSpec::ReadMask(const Node& node) {
  masked = node.has_in(kConvMask);
  if (!masked) return;
  RequireType(node, kConvMask, FBX_BOOL);
  const int rank = node.in(kConvMask).rank();
  const int all = static_cast<int>(space) + 2;
  if (rank != 2 && rank != all)
    RejectOperand("RANK", "has rank " + std::to_string(rank) + ", expected 2 or " + std::to_string(all),
                  kConvMask);
  FitSize(node, kConvMask, 0, &batch);
  FitSize(node, kConvMask, 1, &steps);
  element_mask = rank == all;
  for (size_t d = 3 - space; element_mask && d < 3; ++d) {
    const int64_t size = node.in(kConvMask).dim(static_cast<int>(d + space) - 1);
    if (size >= 0 && size != 1 && of_x.out[d] >= 0 && size != of_x.out[d])
      RejectOperand(
          "SHAPE",
          "has the size " + std::to_string(size) + " beside a state of " + std::to_string(of_x.out[d]),
          kConvMask);
  }
}

}  // namespace fusebox::rnn
