// SPDX-License-Identifier: Apache-2.0
// Random numbers of the same distributions, but with other values than TensorFlow.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// The result's shape, as far as it is constant.
Shape ShapeFrom(const Translation& t, size_t operand) {
  const auto dims = t.Ints(operand);
  if (dims) return *dims;
  const Shape& shape = t.in_type(operand).shape;
  if (shape.rank() != 1 || shape[0] < 0 || shape[0] > 16) return {};
  return std::vector<int64_t>(static_cast<size_t>(shape[0]), Shape::kUnknown);
}

Attrs Seeds(const Translation& t) {
  return MakeAttrs("seed", t.attrs().i64("seed", 0), "seed2", t.attrs().i64("seed2", 0));
}

template <Op op>
Status Random(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const auto* const type = std::get_if<DType>(t.attrs().Find("dtype"));
  const ValueId drawn = t.Typed(op, {t.ToI32(t.in(0))}, {DType::kF32, ShapeFrom(t, 0)}, Seeds(t));
  return t.Return(t.Cast(drawn, type ? *type : DType::kF32));
}

// From the first bound (inclusive) to the second (exclusive).
Status RandomInt(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  const DType dtype = t.in_type(1).dtype;
  const ValueId drawn =
      t.Typed(Op::kRandomUniform, {t.ToI32(t.in(0))}, {DType::kF32, ShapeFrom(t, 0)}, Seeds(t));
  // In 64 bits, because the difference of two 32-bit bounds may overflow.
  const ValueId least = t.Cast(t.in(1), DType::kI64);
  const ValueId width = t.Value(Op::kSub, {t.Cast(t.in(2), DType::kI64), least});
  const ValueId steps = t.Value(Op::kMul, {drawn, t.Cast(width, DType::kF32)});
  const ValueId whole = t.Cast(t.Value(Op::kFloor, {steps}), DType::kI64);
  return t.Return(t.Cast(t.Value(Op::kAdd, {whole, least}), dtype));
}

Status Multinomial(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const auto* const type = std::get_if<DType>(t.attrs().Find("output_dtype"));
  const Shape& logits = t.in_type(0).shape;
  const auto samples = t.Ints(1);
  const int64_t rows = logits.rank() == 2 ? logits[0] : Shape::kUnknown;
  const int64_t columns = samples && samples->size() == 1 ? (*samples)[0] : Shape::kUnknown;
  return t.Return(t.Typed(Op::kMultinomial, {t.Cast(t.in(0), DType::kF32), t.ToI32(t.in(1))},
                          {type ? *type : DType::kI64, {rows, columns}}, Seeds(t)));
}

}  // namespace

std::span<const TranslateRow> RandomTable() {
  static constexpr TranslateRow kTable[] = {
      {"RandomUniform", Random<Op::kRandomUniform>},
      {"RandomStandardNormal", Random<Op::kRandomStandardNormal>},
      {"RandomUniformInt", RandomInt},
      {"Multinomial", Multinomial},
  };
  return kTable;
}

}  // namespace fusebox::converter
