// SPDX-License-Identifier: Apache-2.0
// Moves padding and dilation from separate ops into the attributes of convolutions.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

constexpr const char* kStride[] = {"stride_h", "stride_w"};
constexpr const char* kDilation[] = {"dilation_h_factor", "dilation_w_factor"};

bool IsValid(const Node& node) { return node.attrs.str("padding", "SAME") == "VALID"; }

// [before, after] by dimension of a [4,2] constant; nothing when batch or channels are padded.
std::optional<std::array<Padding, 2>> SpatialPads(const Edit& e, ValueId v) {
  const auto amounts = e.Ints(v);
  if (!amounts || amounts->size() != 8) return std::nullopt;
  const auto& a = *amounts;
  if (a[0] || a[1] || a[6] || a[7]) return std::nullopt;
  return std::array<Padding, 2>{Padding{a[2], a[3]}, Padding{a[4], a[5]}};
}

// Returns whether SAME pads an input of that size as `pads` does. With stride 1, the size does not matter.
bool IsSame(const Padding& pads, int64_t in, int64_t stride, int64_t filter, int64_t dilation) {
  if (stride < 1 || filter < 1 || dilation < 1) return false;
  if (in < 0 && stride != 1) return false;
  return SamePadding(in < 0 ? filter * dilation : in, stride, filter, dilation) == pads;
}

// Returns whether both spatial dimensions of the convolution are padded as SAME would pad x.
bool PadsAreSame(const Edit& e, const Node& conv, const Shape& x, const std::array<Padding, 2>& pads,
                 const std::array<int64_t, 2>& dilation) {
  const Shape& filter = e.shape(conv.operands[1]);
  if (filter.rank() != 4 || x.rank() != 4) return false;
  for (size_t d = 0; d < 2; ++d)
    if (!IsSame(pads[d], x[d + 1], conv.attrs.i64(kStride[d], 1), filter[d + 1], dilation[d])) return false;
  return true;
}

// A PAD of zeros and VALID, where SAME pads the same.
bool PadIntoSame(Edit& e, Node& node) {
  Node* const pad = e.producer(node.operands[0]);
  if (!pad || !IsValid(node)) return false;
  const bool zeros = pad->is(Op::kPad) || (pad->is(Op::kPadV2) && e.Scalar(pad->operands[2]) == 0.0);
  if (!zeros) return false;
  const auto pads = SpatialPads(e, pad->operands[1]);
  const std::array<int64_t, 2> dilation = {node.attrs.i64(kDilation[0], 1), node.attrs.i64(kDilation[1], 1)};
  if (!pads || !PadsAreSame(e, node, e.shape(pad->operands[0]), *pads, dilation)) return false;
  node.attrs.Set("padding", "SAME");
  e.SetOperand(node, 0, pad->operands[0]);
  return true;
}

// SPACE_TO_BATCH_ND, a convolution, BATCH_TO_SPACE_ND: how dilation was once written.
bool Dilated(Edit& e, Node& node) {
  Node* const conv = e.producer(node.operands[0]);
  if (!conv || !(conv->is(Op::kConv2D) || conv->is(Op::kDepthwiseConv2D)) || !e.read_once(node.operands[0]))
    return false;
  Node* const split = e.producer(conv->operands[0], Op::kSpaceToBatchNd);
  if (!split || !IsValid(*conv)) return false;
  const auto block = e.Ints(split->operands[1]);
  const auto again = e.Ints(node.operands[1]);
  const auto pads = e.Ints(split->operands[2]);
  const auto crops = e.Ints(node.operands[2]);
  if (!block || block->size() != 2 || block != again || !pads || !crops || pads->size() != 4 ||
      crops->size() != 4)
    return false;
  const ValueId x = split->operands[0];
  if (e.rank(x) != 4) return false;
  for (size_t d = 0; d < 2; ++d) {
    const bool plain = conv->attrs.i64(kStride[d], 1) == 1 && conv->attrs.i64(kDilation[d], 1) == 1;
    if (!plain || (*block)[d] < 1) return false;
  }
  // Rows and columns that are padded at the end and cropped again only fill the last block.
  const std::array<Padding, 2> net = {Padding{(*pads)[0] - (*crops)[0], (*pads)[1] - (*crops)[1]},
                                      Padding{(*pads)[2] - (*crops)[2], (*pads)[3] - (*crops)[3]}};
  if ((*crops)[0] != 0 || (*crops)[2] != 0) return false;
  const bool none = net == std::array<Padding, 2>{};
  if (!none && !PadsAreSame(e, *conv, e.shape(x), net, {(*block)[0], (*block)[1]})) return false;
  Attrs attrs = conv->attrs;
  attrs.Set("padding", none ? "VALID" : "SAME");
  for (size_t d = 0; d < 2; ++d) attrs.Set(kDilation[d], (*block)[d]);
  ValueIds operands = conv->operands;
  operands[0] = x;
  e.Replace(node, e.Value(conv->op, std::move(operands), std::move(attrs)));
  return true;
}

}  // namespace

std::span<const Rule> ConvRules() {
  static constexpr Rule kRules[] = {{Op::kConv2D, Op::kDepthwiseConv2D, PadIntoSame},
                                    {Op::kBatchToSpaceNd, Dilated}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
