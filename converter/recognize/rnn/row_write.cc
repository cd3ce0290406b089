// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/row_write.h"

#include <algorithm>

namespace fusebox::converter::recognize {
namespace {

bool AreAll(const View& in, ValueId v, int64_t wanted) {
  const auto values = in.Ints(v);
  return values && std::ranges::all_of(*values, [&](int64_t x) { return x == wanted; });
}

// The scalar s of [s, rest, rest, ...].
ValueId First(const View& in, ValueId vector, int64_t rest) {
  const Node* const node = in.Producer(vector);
  if (!node || node->operands.size() < 2) return kNoValue;
  if (node->is(Op::kPack)) {
    for (size_t i = 1; i < node->operands.size(); ++i)
      if (!AreAll(in, node->operands[i], rest)) return kNoValue;
    return node->operands[0];
  }
  if (!node->is(Op::kConcatenation) || node->operands.size() != 2 || !AreAll(in, node->operands[1], rest))
    return kNoValue;
  const Node* const first = in.Producer(node->operands[0]);
  const bool scalar = first && (first->is(Op::kReshape) || first->is(Op::kExpandDims)) &&
                      in.shape(node->operands[0]) == Shape{1};
  return scalar ? first->operands[0] : kNoValue;
}

bool IsNext(const View& in, ValueId next, ValueId index) {
  return in.Other(next, Op::kAdd, [&](ValueId v) { return AreAll(in, v, 1); }) == index;
}

// [1, ...] with the row's dimensions behind.
ValueId RowOf(const View& in, ValueId v) {
  const Node* const node = in.Producer(v);
  if (!node || in.shape(v).rank() < 2 || in.shape(v)[0] != 1) return kNoValue;
  const ValueId row = node->operands[0];
  const std::vector<int64_t> dims = in.shape(v).dims();
  if (node->is(Op::kExpandDims)) return AreAll(in, node->operands[1], 0) ? row : kNoValue;
  const bool same =
      node->is(Op::kReshape) && in.shape(row) == Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
  return same && in.shape(row).is_static() ? row : kNoValue;
}

std::optional<RowWrite> ReadUpdate(const View& in, const Node& update) {
  const ValueId row = RowOf(in, update.operands[1]);
  const ValueId index = First(in, update.operands[2], 0);
  if (row == kNoValue || index == kNoValue) return std::nullopt;
  return RowWrite{update.operands[0], 1, index, row};
}

std::optional<RowWrite> ReadSlices(const View& in, const Node& joined) {
  if (joined.operands.size() != 3 || joined.attrs.i64("axis", 0) != 0) return std::nullopt;
  const Node* const before = in.Producer(joined.operands[0], Op::kSlice);
  const Node* const after = in.Producer(joined.operands[2], Op::kSlice);
  const ValueId row = RowOf(in, joined.operands[1]);
  if (!before || !after || row == kNoValue || before->operands[0] != after->operands[0]) return std::nullopt;
  const ValueId index = First(in, before->operands[2], -1);
  const bool fits = index != kNoValue && AreAll(in, before->operands[1], 0) &&
                    AreAll(in, after->operands[2], -1) && IsNext(in, First(in, after->operands[1], 0), index);
  if (!fits) return std::nullopt;
  return RowWrite{before->operands[0], 2, index, row};
}

}  // namespace

std::optional<RowWrite> ReadRowWrite(const View& in, ValueId v) {
  const Node* node = in.Producer(v);
  if (node && node->is(Op::kCast) && in.type(node->operands[0]).dtype == in.type(v).dtype)
    node = in.Producer(v = node->operands[0]);
  if (!node || in.type(v).dtype != DType::kF32) return std::nullopt;
  if (node->is(Op::kDynamicUpdateSlice)) return ReadUpdate(in, *node);
  if (node->is(Op::kConcatenation)) return ReadSlices(in, *node);
  const ValueId row = RowOf(in, v);
  if (row == kNoValue) return std::nullopt;
  return RowWrite{kNoValue, 0, kNoValue, row};
}

}  // namespace fusebox::converter::recognize
