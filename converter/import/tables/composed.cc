// SPDX-License-Identifier: Apache-2.0
// Ops that TFLite has no builtin for, out of ones that it has.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <span>

#include "converter/import/tables/composites.h"
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// Like the operand in shape and element type, all of one value.
ValueId Like(Translation& t, ValueId v, double value) {
  return t.Value(Op::kFill, {t.ShapeOf(v), t.Scalar(t.type(v).dtype, value)});
}

Status OnesLike(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.SetResult(0, Like(t, t.in(0), 1));
  return {};
}

// erf(4 y) = y p(y^2) / q(y^2) for |y| <= 1, fitted to the relative error, which is 2.6e-8; erf(4) rounds
// to 1.
Status DefineErf(Translation& t) {
  const DType dtype = t.type(t.in(0)).dtype;
  const auto scalar = [&](double value) { return t.Scalar(dtype, value); };
  const ValueId y = t.Value(Op::kReluN1To1, {t.Value(Op::kMul, {t.in(0), scalar(0.25)})});
  const ValueId square = t.Value(Op::kSquare, {y});
  const auto polynomial = [&](std::initializer_list<double> coefficients) {  // of `square`, highest first
    ValueId sum = scalar(*coefficients.begin());
    for (const double coefficient : std::span(coefficients).subspan(1))
      sum = t.Value(Op::kAdd, {t.Value(Op::kMul, {sum, square}), scalar(coefficient)});
    return sum;
  };
  const ValueId p = polynomial({8.33317785, 74.5976186, 63.6252861, 54.3762973, 12.3869311, 4.51351656});
  const ValueId q = polynomial({39.2379998, 77.6982347, 62.2891819, 29.5296803, 8.07772885, 1});
  t.SetResult(0, t.Value(Op::kReluN1To1, {t.Value(Op::kDiv, {t.Value(Op::kMul, {y, p}), q})}));
  return {};
}

Status Erf(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.SetResult(0, t.Composite(kErf, {t.in(0)}, DefineErf));
  return {};
}

Status Erfc(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const ValueId erf = t.Composite(kErf, {t.in(0)}, DefineErf);
  t.SetResult(0, t.Value(Op::kSub, {t.Scalar(t.in_type(0).dtype, 1), erf}));
  return {};
}

// 0 where the divisor is 0, whatever is divided.
Status DivNoNan(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const DType dtype = t.in_type(1).dtype;
  const ValueId x = t.in(0);
  const ValueId y = t.in(1);
  const ValueId zero = t.Scalar(dtype, 0);
  const ValueId none = t.Value(Op::kEqual, {y, zero});
  const ValueId safe = t.Value(Op::kSelectV2, {none, t.Scalar(dtype, 1), y});
  t.SetResult(0, t.Value(Op::kSelectV2, {none, zero, t.Value(Op::kDiv, {x, safe})}));
  return {};
}

// 0 where the second factor is 0, even if the first is not finite.
Status MulNoNan(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const ValueId x = t.in(0);
  const ValueId y = t.in(1);
  const ValueId zero = t.Scalar(t.in_type(1).dtype, 0);
  t.SetResult(0, t.Value(Op::kSelectV2, {t.Value(Op::kEqual, {y, zero}), zero, t.Value(Op::kMul, {x, y})}));
  return {};
}

// x - y * trunc(x / y), of integers, whose division truncates.
Status TruncateMod(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  if (IsFloat(t.in_type(0).dtype)) return Unsupported("of " + std::string(Name(t.in_type(0).dtype)));
  const ValueId whole = t.Value(Op::kMul, {t.Value(Op::kDiv, {t.in(0), t.in(1)}), t.in(1)});
  t.SetResult(0, t.Value(Op::kSub, {t.in(0), whole}));
  return {};
}

Status TruncateDiv(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  if (IsFloat(t.in_type(0).dtype)) return Unsupported("of " + std::string(Name(t.in_type(0).dtype)));
  t.SetResult(0, t.Value(Op::kDiv, {t.in(0), t.in(1)}));
  return {};
}

// v1 of where: a condition of rank 1 chooses whole rows.
Status SelectV1(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int condition, t.Rank(t.in(0)));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(1)));
  ValueId chosen = t.in(0);
  if (condition == 1 && rank > 1) {
    std::vector<int32_t> dims(static_cast<size_t>(rank), 1);
    dims[0] = -1;
    chosen = t.Value(Op::kReshape, {chosen, t.I32(std::move(dims))});
  } else if (condition != rank && condition != 0) {
    return Invalid("its condition has rank " + std::to_string(condition) + ", its values " +
                   std::to_string(rank));
  }
  t.SetResult(0, t.Value(Op::kSelectV2, {chosen, t.in(1), t.in(2)}));
  return {};
}

// start + i * (stop - start) / (n - 1)
Status LinSpace(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int64_t count, t.Int(2));
  if (count < 1) return Invalid("it has " + std::to_string(count) + " values");
  const DType dtype = t.in_type(0).dtype;
  const ValueId steps = t.Value(
      Op::kRange, {t.Scalar(dtype, 0), t.Scalar(dtype, static_cast<double>(count)), t.Scalar(dtype, 1)});
  const ValueId width =
      t.Value(Op::kDiv, {t.Value(Op::kSub, {t.in(1), t.in(0)}),
                         t.Scalar(dtype, static_cast<double>(std::max<int64_t>(count - 1, 1)))});
  t.SetResult(0, t.Value(Op::kAdd, {t.Value(Op::kMul, {steps, width}), t.in(0)}));
  return {};
}

// Every axis in turn is cut where its last `shift` elements begin, and these come first.
Status Roll(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const auto shifts, t.Ints(1));
  FUSEBOX_ASSIGN(const auto axes, t.Ints(2));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  if (shifts.size() != axes.size()) return Invalid("the numbers of shifts and axes differ");
  ValueId x = t.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return Invalid("axis " + std::to_string(axes[i]) + " does not exist");
    const int64_t size = t.type(x).shape[static_cast<size_t>(axis)];
    if (size < 0) return Unsupported("dimension " + std::to_string(axis) + " is not known");
    if (size == 0) continue;
    const int64_t shift = (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    std::vector<int32_t> begin(static_cast<size_t>(rank), 0);
    std::vector<int32_t> whole(static_cast<size_t>(rank), -1);
    std::vector<int32_t> at = begin;
    std::vector<int32_t> front = whole;
    at[static_cast<size_t>(axis)] = front[static_cast<size_t>(axis)] = static_cast<int32_t>(size - shift);
    const ValueId last = t.Value(Op::kSlice, {x, t.I32(std::move(at)), t.I32(std::move(whole))});
    const ValueId first = t.Value(Op::kSlice, {x, t.I32(std::move(begin)), t.I32(std::move(front))});
    Attrs attrs;
    attrs.Set("axis", axis);
    x = t.Value(Op::kConcatenation, {last, first}, std::move(attrs));
  }
  t.SetResult(0, x);
  return {};
}

// Half of the sum of squares.
Status L2Loss(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  std::vector<int32_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  const ValueId sum = t.Value(Op::kSum, {t.Value(Op::kSquare, {t.in(0)}), t.I32(std::move(axes))});
  t.SetResult(0, t.Value(Op::kMul, {sum, t.Scalar(t.in_type(0).dtype, 0.5)}));
  return {};
}

ValueId Scatter(Translation& t, ValueId updates) {
  return t.Value(Op::kScatterNd, {t.ToI32(t.in(1)), updates, t.ShapeOf(t.in(0))});
}

Status TensorScatterAdd(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  t.SetResult(0, t.Value(Op::kAdd, {t.in(0), Scatter(t, t.in(2))}));
  return {};
}

// Sums the updates of an index that occurs twice; TensorFlow does not define this case.
Status TensorScatterUpdate(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  if (t.in_type(0).dtype == DType::kBool || t.in_type(0).dtype == DType::kString)
    return Unsupported("of " + std::string(Name(t.in_type(0).dtype)));
  const ValueId written = Scatter(t, Like(t, t.in(2), 1));
  const ValueId is_new = t.Value(Op::kNotEqual, {written, t.Scalar(t.in_type(0).dtype, 0)});
  t.SetResult(0, t.Value(Op::kSelectV2, {is_new, Scatter(t, t.in(2)), t.in(0)}));
  return {};
}

// Keeps lower <= row - column and column - row <= upper; a negative bound keeps all on its side.
Status MatrixBandPart(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int64_t lower, t.Int(1));
  FUSEBOX_ASSIGN(const int64_t upper, t.Int(2));
  const Shape shape = t.in_type(0).shape;
  if (shape.rank() < 2) return Unsupported("the rank of its operand is not known to be 2 or more");
  const int64_t rows = shape.dims()[shape.dims().size() - 2];
  const int64_t columns = shape.dims().back();
  if (rows < 0 || columns < 0) return Unsupported("the size of its matrices is not known");
  if (rows > 0 && columns > (int64_t{1} << 26) / rows)
    return Unsupported("its matrices have too many elements for a mask");
  std::vector<uint8_t> keep;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      keep.push_back((lower < 0 || r - c <= lower) && (upper < 0 || c - r <= upper));
  }
  const ValueId mask = t.Const({{DType::kBool, Shape({rows, columns})}, Buffer::Of<uint8_t>(keep)});
  t.SetResult(0, t.Value(Op::kSelectV2, {mask, t.in(0), t.Scalar(t.in_type(0).dtype, 0)}));
  return {};
}

Status IsNan(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.SetResult(0, t.Value(Op::kNotEqual, {t.in(0), t.in(0)}));
  return {};
}

// Compares the absolute value with infinity.
template <Op op>
Status AgainstInfinity(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const ValueId infinity = t.Scalar(t.in_type(0).dtype, std::numeric_limits<double>::infinity());
  t.SetResult(0, t.Value(op, {t.Value(Op::kAbs, {t.in(0)}), infinity}));
  return {};
}

Status Tan(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.SetResult(0, t.Value(Op::kDiv, {t.Value(Op::kSin, {t.in(0)}), t.Value(Op::kCos, {t.in(0)})}));
  return {};
}

Status Atan(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.SetResult(0, t.Value(Op::kAtan2, {t.in(0), t.Scalar(t.in_type(0).dtype, 1)}));
  return {};
}

// 0 where x is 0, whatever y is; else x f(y).
template <Op op>
Status ZeroTimes(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const DType dtype = t.in_type(0).dtype;
  const ValueId x = t.in(0);
  const ValueId zero = t.Scalar(dtype, 0);
  const ValueId one = t.Scalar(dtype, 1);
  const ValueId none = t.Value(Op::kEqual, {x, zero});
  const ValueId y = t.Value(Op::kSelectV2, {none, one, t.in(1)});
  const ValueId product =
      op == Op::kDiv ? t.Value(op, {x, y}) : t.Value(Op::kMul, {x, t.Value(Op::kLog, {y})});
  t.SetResult(0, t.Value(Op::kSelectV2, {none, zero, product}));
  return {};
}

}  // namespace

std::span<const TranslateRow> ComposedTable() {
  static constexpr TranslateRow kTable[] = {
      {"OnesLike", OnesLike},
      {"Erf", Erf},
      {"Erfc", Erfc},
      {"DivNoNan", DivNoNan},
      {"MulNoNan", MulNoNan},
      {"TruncateMod", TruncateMod},
      {"Mod", TruncateMod},
      {"TruncateDiv", TruncateDiv},
      {"Select", SelectV1},
      {"LinSpace", LinSpace},
      {"Roll", Roll},
      {"L2Loss", L2Loss},
      {"IsNan", IsNan},
      {"IsInf", AgainstInfinity<Op::kEqual>},
      {"IsFinite", AgainstInfinity<Op::kLess>},
      {"Tan", Tan},
      {"Atan", Atan},
      {"Xdivy", ZeroTimes<Op::kDiv>},
      {"Xlogy", ZeroTimes<Op::kLog>},
      {"TensorScatterAdd", TensorScatterAdd},
      {"TensorScatterUpdate", TensorScatterUpdate},
      {"MatrixBandPart", MatrixBandPart},
  };
  return kTable;
}

}  // namespace fusebox::converter
