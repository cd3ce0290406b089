// SPDX-License-Identifier: Apache-2.0
// Segment reductions, distinct values and their counts, and scattering with minimum or maximum.
#include <limits>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Attrs Axis(int64_t axis) { return MakeAttrs("axis", axis); }

// Rows and their segment ids, ascending.
struct Segments {
  ValueId rows, ids;
  int rank = 0;
};

Result<Segments> SegmentsOf(Translation& t) {
  if (t.count() == 2) {
    FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
    if (rank < 1) return Invalid("its data is a scalar");
    return Segments{t.in(0), t.ToI32(t.in(1)), rank};
  }
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  if (rank < 1) return Invalid("its data is a scalar");
  return Segments{t.Value(Op::kGather, {t.in(0), t.ToI32(t.in(1))}), t.ToI32(t.in(2)), rank};
}

// Number of rows per segment, as [segments, 1, 1, ...], in the rows' dtype.
ValueId Counts(Translation& t, const Segments& s) {
  const ValueId ones = t.Value(Op::kFill, {t.ShapeOf(s.ids), t.Scalar(t.type(s.rows).dtype, 1)});
  const ValueId counts = t.Value(Op::kSegmentSum, {ones, s.ids});
  std::vector<int32_t> dims(static_cast<size_t>(s.rank), 1);
  dims[0] = -1;
  return t.Reshape(counts, std::move(dims));
}

Status SegmentSum(Translation& t) {
  FUSEBOX_ASSIGN(const Segments s, SegmentsOf(t));
  return t.Return(t.Value(Op::kSegmentSum, {s.rows, s.ids}));
}

// The sum divided by the count or its square root; zero for an empty segment.
template <bool root>
Status SegmentMean(Translation& t) {
  FUSEBOX_ASSIGN(const Segments s, SegmentsOf(t));
  ValueId count = t.Value(Op::kMaximum, {Counts(t, s), t.Scalar(t.type(s.rows).dtype, 1)});
  if (root) count = t.Value(Op::kSqrt, {count});
  return t.Return(t.Value(Op::kDiv, {t.Value(Op::kSegmentSum, {s.rows, s.ids}), count}));
}

// In TFLite, a segment that is empty or holds only infinities has a finite maximum and minimum.
ValueId ChosenOf(Translation& t, Op unsorted, ValueId rows, ValueId ids, ValueId count) {
  const ValueId chosen = t.Value(unsorted, {rows, ids, count});
  const DType dtype = t.type(rows).dtype;
  if (!IsFloat(dtype) || unsorted == Op::kUnsortedSegmentProd) return chosen;
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId least = t.Scalar(dtype, unsorted == Op::kUnsortedSegmentMax ? -infinity : infinity);
  const ValueId counts = t.Cast(t.Value(Op::kNotEqual, {rows, least}), DType::kI32);
  const ValueId others = t.Value(Op::kUnsortedSegmentSum, {counts, ids, count});
  const ValueId any = t.Value(Op::kGreater, {others, t.I32Scalar(0)});
  return t.Value(Op::kSelectV2, {any, chosen, least});
}

// The last id determines the number of segments. An empty segment is 0, for products 1.
template <Op unsorted>
Status SegmentChoice(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const Segments s, SegmentsOf(t));
  const DType dtype = t.type(s.rows).dtype;
  const ValueId largest = t.Value(Op::kReduceMax, {s.ids, t.I32({0})});
  const ValueId count = t.Value(Op::kAdd, {largest, t.I32Scalar(1)});
  const ValueId chosen = ChosenOf(t, unsorted, s.rows, s.ids, count);
  if (unsorted == Op::kUnsortedSegmentProd) {
    return t.Return(chosen);
  }
  const ValueId zero = t.Scalar(dtype, 0);
  const ValueId none = t.Value(Op::kEqual, {Counts(t, s), zero});
  return t.Return(t.Value(Op::kSelectV2, {none, zero, chosen}));
}

// Distinct values, the index of each element's value, and counts.
Status Unique(Translation& t, DType index) {
  const Node& made = t.Emit(Op::kUnique, {t.in(0)}, MakeAttrs("idx_out_type", index), 2);
  // Copied: Emit invalidates references.
  const ValueId y = made.results[0];
  const ValueId which = made.results[1];
  t.SetResult(0, y);
  t.SetResult(1, which);
  if (t.results().size() < 3) return {};
  const ValueId ids = t.ToI32(which);
  const ValueId ones = t.Value(Op::kFill, {t.ShapeOf(ids), t.Scalar(DType::kI32, 1)});
  const ValueId size = t.Reshape(t.ShapeOf(y), {});
  t.SetResult(2, t.Cast(t.Value(Op::kUnsortedSegmentSum, {ones, ids, size}), index));
  return {};
}

DType IndexType(const Translation& t) {
  const auto* const type = std::get_if<DType>(t.attrs().Find("out_idx"));
  return type ? *type : DType::kI32;
}

Status UniqueV1(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  return Unique(t, IndexType(t));
}

// The second version may compare slices along an axis; for a list, these are its elements.
Status UniqueV2(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  if (rank != 1) return Unsupported("distinct slices of a tensor of rank " + std::to_string(rank));
  return Unique(t, IndexType(t));
}

// Counts of the numbers of a list below `size`; larger ones are counted in one more place, which is cut off.
Status CountList(Translation& t, DType dtype) {
  const ValueId size = t.Reshape(t.ToI32(t.in(1)), {});
  const ValueId ids = t.ToI32(t.Value(Op::kMinimum, {t.in(0), t.Cast(size, t.in_type(0).dtype)}));
  const ValueId ones = t.Value(Op::kFill, {t.ShapeOf(ids), t.Scalar(DType::kI32, 1)});
  const ValueId places = t.Value(Op::kAdd, {size, t.I32Scalar(1)});
  const ValueId counts = t.Value(Op::kUnsortedSegmentSum, {ones, ids, places});
  return t.Return(t.Cast(t.Value(Op::kSlice, {counts, t.I32({0}), t.Reshape(size, {1})}), dtype));
}

// Presence or counts of the numbers below `size`: sums of one-hot vectors, which are zero for larger numbers.
Status Count(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  if (rank != 1 && rank != 2) return Unsupported("of rank " + std::to_string(rank));
  const Shape weights = t.in_type(2).shape;
  const auto* const type = std::get_if<DType>(t.attrs().Find("T"));
  const DType dtype = type ? *type : t.in_type(2).dtype;
  const bool binary = t.attrs().b("binary_output", false);
  if (rank == 1 && !binary && weights.element_count() == 0) return CountList(t, dtype);
  const ValueId hot =
      t.Value(Op::kOneHot, {t.in(0), t.ToI32(t.in(1)), t.Scalar(dtype, 1), t.Scalar(dtype, 0)}, Axis(-1));
  const ValueId axis = t.I32({rank - 1});
  if (binary) {  // not REDUCE_MAX, which is undefined for an empty list
    return t.Return(t.Value(Op::kMinimum, {t.Value(Op::kSum, {hot, axis}), t.Scalar(dtype, 1)}));
  }
  ValueId counted = hot;
  if (!weights.is_static()) return Unsupported("the shape of its weights is not known");
  if (weights.element_count() != 0)
    counted = t.Value(Op::kMul, {hot, t.Value(Op::kExpandDims, {t.in(2), t.I32Scalar(-1)})});
  return t.Return(t.Value(Op::kSum, {counted, axis}));
}

Status Bincount(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  return rank == 1 ? Count(t) : Unsupported("of rank " + std::to_string(rank));
}

// Rows [rows, n] are ascending; counts, for each value [rows, m], the smaller elements of its row.
template <Op smaller>
Status Bound(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const ValueId sorted = t.Value(Op::kExpandDims, {t.in(0), t.I32Scalar(1)});
  const ValueId values = t.Value(Op::kExpandDims, {t.in(1), t.I32Scalar(2)});
  const auto* const type = std::get_if<DType>(t.attrs().Find("out_type"));
  const ValueId below = t.Cast(t.Value(smaller, {sorted, values}), type ? *type : DType::kI32);
  return t.Return(t.Value(Op::kSum, {below, t.I32({2})}));
}

// Minimum or maximum of x and all values scattered to the same place. Places are flat indices over the
// indexed dimensions.
template <Op choice, Op unsorted>
Status TensorScatterChoice(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  // Copied: Emit invalidates references.
  const Shape shape = t.in_type(0).shape;
  const Shape indices = t.in_type(1).shape;
  if (indices.rank() < 1 || indices.dims().back() < 0)
    return Unsupported("the shape of its indices is not known");
  const auto depth = static_cast<size_t>(indices.dims().back());
  if (shape.rank() < static_cast<int>(depth)) return Unsupported("the rank of its operand is not known");
  std::vector<int32_t> strides(depth, 1);
  std::vector<int32_t> flat{-1};
  int64_t places = 1;
  for (size_t i = depth; i-- > 0;) {
    if (shape[i] < 0 || (shape[i] > 0 && places > INT32_MAX / shape[i]))
      return Unsupported("dimension " + std::to_string(i) + " is not known or too large");
    strides[i] = static_cast<int32_t>(places);
    places *= shape[i];
  }
  for (size_t i = depth; i < static_cast<size_t>(shape.rank()); ++i) {
    if (shape[i] < 0) return Unsupported("dimension " + std::to_string(i) + " is not known");
    flat.push_back(static_cast<int32_t>(shape[i]));
  }
  const ValueId numbered =
      t.Value(Op::kSum, {t.Value(Op::kMul, {t.ToI32(t.in(1)), t.I32(std::move(strides))}), t.I32({-1})});
  const ValueId ids = t.Reshape(numbered, {-1});
  const ValueId updates = t.Reshape(t.in(2), std::move(flat));
  const ValueId chosen = ChosenOf(t, unsorted, updates, ids, t.I32Scalar(static_cast<int32_t>(places)));
  return t.Return(t.Value(choice, {t.in(0), t.Value(Op::kReshape, {chosen, t.ShapeOf(t.in(0))})}));
}

Status TensorScatterSub(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  const ValueId added = t.Value(Op::kScatterNd, {t.ToI32(t.in(1)), t.in(2), t.ShapeOf(t.in(0))});
  return t.Return(t.Value(Op::kSub, {t.in(0), added}));
}

// y[x[i]] = i
Status InvertPermutation(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const DType dtype = t.in_type(0).dtype;
  const ValueId x = t.ToI32(t.in(0));
  const ValueId shape = t.ShapeOf(x);
  const ValueId places = t.Value(Op::kExpandDims, {x, t.I32Scalar(1)});
  const ValueId count = t.Reshape(shape, {});
  const ValueId numbers = t.Value(Op::kRange, {t.I32Scalar(0), count, t.I32Scalar(1)});
  return t.Return(t.Cast(t.Value(Op::kScatterNd, {places, numbers, shape}), dtype));
}

}  // namespace

std::span<const TranslateRow> SegmentTable() {
  static constexpr TranslateRow kTable[] = {
      {"SegmentSum", SegmentSum},
      {"SegmentMean", SegmentMean<false>},
      {"SegmentMax", SegmentChoice<Op::kUnsortedSegmentMax>},
      {"SegmentMin", SegmentChoice<Op::kUnsortedSegmentMin>},
      {"SegmentProd", SegmentChoice<Op::kUnsortedSegmentProd>},
      {"SparseSegmentSum", SegmentSum},
      {"SparseSegmentMean", SegmentMean<false>},
      {"SparseSegmentSqrtN", SegmentMean<true>},
      {"Unique", UniqueV1},
      {"UniqueV2", UniqueV2},
      {"UniqueWithCounts", UniqueV1},
      {"UniqueWithCountsV2", UniqueV2},
      {"DenseBincount", Count},
      {"Bincount", Bincount},
      {"LowerBound", Bound<Op::kLess>},
      {"UpperBound", Bound<Op::kLessEqual>},
      {"TensorScatterSub", TensorScatterSub},
      {"TensorScatterMax", TensorScatterChoice<Op::kMaximum, Op::kUnsortedSegmentMax>},
      {"TensorScatterMin", TensorScatterChoice<Op::kMinimum, Op::kUnsortedSegmentMin>},
      {"InvertPermutation", InvertPermutation},
  };
  return kTable;
}

}  // namespace fusebox::converter
