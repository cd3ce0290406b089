// SPDX-License-Identifier: Apache-2.0
// Old versions of ops, and reductions composed of other ops.
#include <algorithm>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// The axis is the first operand.
Status ConcatV1(Translation& t) {
  if (t.count() < 2) return Invalid("it has no operands");
  FUSEBOX_ASSIGN(const int64_t axis, t.Int(0));
  const std::vector<ValueId> parts(t.node().operands.begin() + 1, t.node().operands.end());
  return t.Return(parts.size() == 1 ? parts[0] : t.Value(Op::kConcatenation, parts, MakeAttrs("axis", axis)));
}

Status TopKV1(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const int64_t k = t.attrs().i64("k", -1);
  if (k < 0 || k > INT32_MAX) return Invalid("attribute k is missing");
  const Node& made = t.Emit(Op::kTopkV2, {t.in(0), t.I32Scalar(static_cast<int32_t>(k))}, {}, 2);
  // Copied: Emit invalidates references.
  const ValueId values = made.results[0];
  const ValueId indices = made.results[1];
  t.SetResult(0, values);
  t.SetResult(1, indices);
  return {};
}

// Blocks are square, over the two dimensions after the batch.
template <Op op>
Status SquareBlocks(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const int64_t size = t.attrs().i64("block_size", 0);
  if (size < 1 || size > INT32_MAX) return Invalid("block_size " + std::to_string(size));
  const auto block = static_cast<int32_t>(size);
  return t.Return(t.Value(op, {t.in(0), t.I32({block, block}), t.ToI32(t.in(1))}));
}

struct Along {
  int64_t rank, axis, length;
  bool reverse;
};

// x with `by` ones inserted before it along the axis (after it in reverse), cut to its size.
ValueId Shifted(Translation& t, ValueId x, const Along& along, int64_t by) {
  const auto rank = static_cast<size_t>(along.rank);
  const auto at = static_cast<size_t>(along.axis);
  std::vector<int32_t> begin(rank, 0);
  std::vector<int32_t> size(rank, -1);
  std::vector<int32_t> pads(2 * rank, 0);
  const auto steps = static_cast<int32_t>(by);
  if (along.reverse) begin[at] = steps;
  size[at] = static_cast<int32_t>(along.length - by);
  pads[2 * at + (along.reverse ? 1 : 0)] = steps;
  const ValueId kept = t.Slice(x, std::move(begin), std::move(size));
  const ValueId table = t.Const({{DType::kI32, {along.rank, 2}}, Buffer::Of<int32_t>(pads)});
  return t.Value(Op::kPadV2, {kept, table, t.Scalar(t.type(x).dtype, 1)});
}

// Multiplies each element with the one 1, 2, 4, ... before it: after log2(length) rounds with all before it.
Status Cumprod(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const int64_t given, t.Int(1));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) return Invalid("axis " + std::to_string(given) + " does not exist");
  const int64_t length = t.in_type(0).shape[static_cast<size_t>(axis)];
  if (length < 0) return Unsupported("dimension " + std::to_string(axis) + " is not known");
  if (length > INT32_MAX) return Unsupported("dimension " + std::to_string(axis) + " is too large");
  const Along along{rank, axis, length, t.attrs().b("reverse", false)};
  ValueId x = t.in(0);
  if (t.attrs().b("exclusive", false) && length > 0) x = Shifted(t, x, along, 1);
  for (int64_t by = 1; by < length; by *= 2) x = t.Value(Op::kMul, {x, Shifted(t, x, along, by)});
  return t.Return(x);
}

Status EuclideanNorm(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  if (!IsFloat(t.in_type(0).dtype)) return Unsupported("of " + std::string(Name(t.in_type(0).dtype)));
  Attrs attrs;
  if (t.attrs().b("keep_dims", false)) attrs.Set("keep_dims", true);
  const ValueId squares = t.Value(Op::kSquare, {t.in(0)});
  return t.Return(t.Value(Op::kSqrt, {t.Value(Op::kSum, {squares, t.ToI32(t.in(1))}, std::move(attrs))}));
}

}  // namespace

std::span<const TranslateRow> FormTable() {
  static constexpr TranslateRow kTable[] = {
      {"Concat", ConcatV1},
      {"TopK", TopKV1},
      {"SpaceToBatch", SquareBlocks<Op::kSpaceToBatchNd>},
      {"BatchToSpace", SquareBlocks<Op::kBatchToSpaceNd>},
      {"Cumprod", Cumprod},
      {"EuclideanNorm", EuclideanNorm},
  };
  return kTable;
}

}  // namespace fusebox::converter
