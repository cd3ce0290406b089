// SPDX-License-Identifier: Apache-2.0
// Bitwise integer ops. TFLite has only BITWISE_XOR and RIGHT_SHIFT; the others are composed with arithmetic.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Status Xor(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(Op::kBitwiseXor, {t.in(0), t.in(1)}));
}

// floor((x + y) / 2) is (x & y) + ((x ^ y) >> 1), and also (x >> 1) + (y >> 1) + (x & y & 1): neither sum
// overflows.
ValueId BothBits(Translation& t, ValueId x, ValueId y) {
  const ValueId two = t.Scalar(t.type(x).dtype, 2);
  const auto half = [&](ValueId v) { return t.Value(Op::kFloorDiv, {v, two}); };
  const auto last = [&](ValueId v) { return t.Value(Op::kFloorMod, {v, two}); };
  const ValueId halves = t.Value(Op::kAdd, {half(x), half(y)});
  const ValueId carry = t.Value(Op::kMul, {last(x), last(y)});
  const ValueId differing = half(t.Value(Op::kBitwiseXor, {x, y}));
  return t.Value(Op::kSub, {t.Value(Op::kAdd, {halves, carry}), differing});
}

Status Signed(Translation& t) {
  const DType dtype = t.in_type(0).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return {};
  return Unsupported("bits of " + std::string(Name(dtype)));
}

Status And(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_TRY(Signed(t));
  return t.Return(BothBits(t, t.in(0), t.in(1)));
}

Status Or(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_TRY(Signed(t));
  const ValueId differing = t.Value(Op::kBitwiseXor, {t.in(0), t.in(1)});
  return t.Return(t.Value(Op::kAdd, {BothBits(t, t.in(0), t.in(1)), differing}));
}

Status Invert(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_TRY(Signed(t));
  return t.Return(t.Value(Op::kSub, {t.Scalar(t.in_type(0).dtype, -1), t.in(0)}));
}

Status RightShift(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(Op::kRightShift, {t.in(0), t.in(1)}));
}

// The result type is stored in the result tensor only.
Status Bitcast(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const auto* const type = std::get_if<DType>(t.attrs().Find("type"));
  if (!type) return Invalid("its result type is missing");
  const Type from = t.in_type(0);
  const size_t before = BitsOf(from.dtype);
  const size_t after = BitsOf(*type);
  if (before == 0 || after == 0) return Unsupported("of " + std::string(Name(from.dtype)));
  Shape shape = from.shape;
  if (!shape.ranked()) return Unsupported("the rank of its operand is not known");
  if (before > after) {
    shape.dims().push_back(static_cast<int64_t>(before / after));
  } else if (before < after) {
    if (shape.rank() == 0) return Invalid("a scalar has too few bits");
    const int64_t last = shape.dims().back();
    const int64_t parts = static_cast<int64_t>(after / before);
    if (last >= 0 && last != parts)
      return Invalid("its last dimension is " + std::to_string(last) + ", expected " + std::to_string(parts));
    shape.dims().erase(shape.dims().end() - 1);
  }
  return t.Return(t.Typed(Op::kBitcast, {t.in(0)}, {*type, std::move(shape)}));
}

}  // namespace

std::span<const TranslateRow> BitTable() {
  static constexpr TranslateRow kTable[] = {
      {"BitwiseXor", Xor}, {"BitwiseAnd", And},        {"BitwiseOr", Or},
      {"Invert", Invert},  {"RightShift", RightShift}, {"Bitcast", Bitcast},
  };
  return kTable;
}

}  // namespace fusebox::converter
