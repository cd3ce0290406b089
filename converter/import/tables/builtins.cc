// SPDX-License-Identifier: Apache-2.0
// Ops with a builtin that belong to no larger family.
#include <algorithm>
#include <cmath>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Status LocalResponse(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  return t.Return(
      t.Value(Op::kLocalResponseNormalization, {t.in(0)},
              MakeAttrs("radius", t.attrs().i64("depth_radius", 5), "bias", t.attrs().f64("bias", 1), "alpha",
                        t.attrs().f64("alpha", 1), "beta", t.attrs().f64("beta", 0.5))));
}

Status Bucketize(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const AttrValue* const given = t.attrs().Find("boundaries");
  const auto* const boundaries = given ? std::get_if<std::vector<double>>(given) : nullptr;
  if (boundaries == nullptr) return Invalid("it has no list of boundaries");
  return t.Return(t.Value(Op::kBucketize, {t.in(0)}, MakeAttrs("boundaries", *boundaries)));
}

// Versions 2 and 3 have operands for other diagonals and for the padding value.
Status MainDiagonal(Translation& t, size_t k) {
  if (t.count() <= k) return {};
  FUSEBOX_ASSIGN(const auto diagonals, t.Ints(k));
  for (const int64_t d : diagonals)
    if (d != 0) return Unsupported("diagonal " + std::to_string(d) + "; only the main one is supported");
  return {};
}

Status MatrixDiag(Translation& t) {
  if (t.count() != 1) {
    FUSEBOX_TRY(t.Arity(5));
    FUSEBOX_TRY(MainDiagonal(t, 1));
    for (const size_t size : {2, 3}) {
      FUSEBOX_ASSIGN(const int64_t given, t.Int(size));
      const Shape& shape = t.in_type(0).shape;
      if (given != -1 && (!shape.ranked() || shape.rank() == 0 || shape.dims().back() != given))
        return Unsupported("a matrix that is larger than its diagonal");
    }
    const Type& padding = t.in_type(4);
    if (IsFloat(padding.dtype)) {
      FUSEBOX_ASSIGN(const double value, t.Float(4));
      if (value != 0) return Unsupported("a padding_value other than 0");
    } else {
      FUSEBOX_ASSIGN(const int64_t value, t.Int(4));
      if (value != 0) return Unsupported("a padding_value other than 0");
    }
  }
  return t.Return(t.Value(Op::kMatrixDiag, {t.in(0)}));
}

Status MatrixSetDiag(Translation& t) {
  if (t.count() != 2) FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_TRY(MainDiagonal(t, 2));
  return t.Return(t.Value(Op::kMatrixSetDiag, {t.in(0), t.in(1)}));
}

// The elements of [..., m, n] whose row equals their column.
Status MatrixDiagPart(Translation& t) {
  if (t.count() != 1) FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_TRY(MainDiagonal(t, 1));
  const Shape shape = t.in_type(0).shape;  // copied: Emit invalidates references
  if (shape.rank() < 2) return Unsupported("the rank of its operand is not known to be 2 or more");
  const auto rank = static_cast<size_t>(shape.rank());
  const int64_t rows = shape[rank - 2];
  const int64_t columns = shape[rank - 1];
  if (rows < 0 || columns < 0 || rows * columns > INT32_MAX)
    return Unsupported("the size of its matrices is not known");
  std::vector<int32_t> at;
  for (int64_t i = 0; i < std::min(rows, columns); ++i) at.push_back(static_cast<int32_t>(i * (columns + 1)));
  std::vector<int32_t> flat;
  for (size_t i = 0; i + 2 < rank; ++i) flat.push_back(static_cast<int32_t>(shape[i]));
  flat.push_back(static_cast<int32_t>(rows * columns));
  if (std::ranges::count(flat, -1) > 1) return Unsupported("several sizes of its operand are not known");
  Attrs attrs;
  attrs.Set("axis", static_cast<int64_t>(rank) - 2);
  const ValueId lines = t.Reshape(t.in(0), std::move(flat));
  return t.Return(t.Value(Op::kGather, {lines, t.I32(std::move(at))}, std::move(attrs)));
}

template <Op op>
Status UnsortedSegment(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  return t.Return(t.Value(op, {t.in(0), t.ToI32(t.in(1)), t.ToI32(t.in(2))}));
}

Status FakeQuant(Translation& t, double least, double most) {
  const int64_t bits = t.attrs().i64("num_bits", 8);
  if (least == 0 && most == 0) return t.Return(t.Value(Op::kZerosLike, {t.in(0)}));
  if (!(least < most) || !std::isfinite(most - least))
    return Invalid("its range is from " + std::to_string(least) + " to " + std::to_string(most));
  if (bits < 2 || bits > 16) return Invalid("num_bits is " + std::to_string(bits) + ", expected 2 to 16");
  Attrs attrs;
  attrs.Set("min", least);
  attrs.Set("max", most);
  attrs.Set("num_bits", bits);
  if (t.attrs().b("narrow_range", false)) attrs.Set("narrow_range", true);
  return t.Return(t.Value(Op::kFakeQuant, {t.in(0)}, std::move(attrs)));
}

Status FakeQuantArgs(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  return FakeQuant(t, t.attrs().f64("min", -6), t.attrs().f64("max", 6));
}

Status FakeQuantVars(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const double least, t.Float(1));
  FUSEBOX_ASSIGN(const double most, t.Float(2));
  return FakeQuant(t, least, most);
}

}  // namespace

std::span<const TranslateRow> BuiltinTable() {
  static constexpr TranslateRow kTable[] = {
      {"LRN", LocalResponse},
      {"Bucketize", Bucketize},
      {"MatrixDiag", MatrixDiag},
      {"MatrixDiagV2", MatrixDiag},
      {"MatrixDiagV3", MatrixDiag},
      {"MatrixSetDiag", MatrixSetDiag},
      {"MatrixSetDiagV2", MatrixSetDiag},
      {"MatrixSetDiagV3", MatrixSetDiag},
      {"MatrixDiagPart", MatrixDiagPart},
      {"MatrixDiagPartV2", MatrixDiagPart},
      {"MatrixDiagPartV3", MatrixDiagPart},
      {"UnsortedSegmentSum", UnsortedSegment<Op::kUnsortedSegmentSum>},
      {"UnsortedSegmentProd", UnsortedSegment<Op::kUnsortedSegmentProd>},
      {"UnsortedSegmentMax", UnsortedSegment<Op::kUnsortedSegmentMax>},
      {"UnsortedSegmentMin", UnsortedSegment<Op::kUnsortedSegmentMin>},
      {"FakeQuantWithMinMaxArgs", FakeQuantArgs},
      {"FakeQuantWithMinMaxVars", FakeQuantVars},
  };
  return kTable;
}

}  // namespace fusebox::converter
