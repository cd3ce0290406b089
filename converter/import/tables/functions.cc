// SPDX-License-Identifier: Apache-2.0
// Logarithms and exponentials that are accurate near zero, and inverse and hyperbolic functions based on
// them.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// The ops used by the formulas below.
class Formula {
 public:
  Formula(Translation& t, DType dtype) : t_(t), dtype_(dtype) {}

  ValueId Number(double value) { return t_.Scalar(dtype_, value); }
  ValueId Add(ValueId x, ValueId y) { return t_.Value(Op::kAdd, {x, y}); }
  ValueId Sub(ValueId x, ValueId y) { return t_.Value(Op::kSub, {x, y}); }
  ValueId Mul(ValueId x, ValueId y) { return t_.Value(Op::kMul, {x, y}); }
  ValueId Div(ValueId x, ValueId y) { return t_.Value(Op::kDiv, {x, y}); }
  ValueId Of(Op op, ValueId x) { return t_.Value(op, {x}); }
  ValueId Choose(ValueId condition, ValueId x, ValueId y) {
    return t_.Value(Op::kSelectV2, {condition, x, y});
  }
  ValueId Negative(ValueId x) { return t_.Value(Op::kLess, {x, Number(0)}); }
  ValueId WithSignOf(ValueId x, ValueId size) { return Choose(Negative(x), Of(Op::kNeg, size), size); }

  // log(1 + x) for -1 <= x <= 1, with a first-order correction for the rounding of 1 + x.
  ValueId Log1pOfSmall(ValueId x) {
    const ValueId sum = Add(x, Number(1));
    const ValueId lost = Sub(x, Sub(sum, Number(1)));
    const ValueId slope = t_.Value(Op::kMaximum, {sum, Number(kTiny)});
    return Add(Of(Op::kLog, sum), Div(lost, slope));
  }
  ValueId Log1p(ValueId x) {
    const ValueId one = Number(1);
    const ValueId below = Log1pOfSmall(t_.Value(Op::kMinimum, {x, one}));
    return Choose(t_.Value(Op::kLessEqual, {x, one}), below, Of(Op::kLog, Add(x, one)));
  }
  // 1 - exp(-|x|), via ELU, which is accurate near zero.
  ValueId Fall(ValueId size) { return Of(Op::kNeg, Of(Op::kElu, Of(Op::kNeg, size))); }

 private:
  static constexpr double kTiny = 1e-30;
  Translation& t_;
  DType dtype_;
};

template <ValueId (*formula)(Formula&, ValueId)>
Status Unary(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Formula f(t, t.in_type(0).dtype);
  return t.Return(formula(f, t.in(0)));
}

ValueId Log1p(Formula& f, ValueId x) { return f.Log1p(x); }

// max(x, 0) + log(1 + exp(-|x|)): equal, but finite where exp(x) overflows.
ValueId Softplus(Formula& f, ValueId x) {
  const ValueId small = f.Of(Op::kExp, f.Of(Op::kNeg, f.Of(Op::kAbs, x)));
  return f.Add(f.Of(Op::kRelu, x), f.Log1pOfSmall(small));
}

// For x > 0, exp(x) - 1 is exp(x) (1 - exp(-x)).
ValueId Expm1(Formula& f, ValueId x) {
  const ValueId fall = f.Fall(f.Of(Op::kAbs, x));
  return f.Choose(f.Negative(x), f.Of(Op::kNeg, fall), f.Mul(fall, f.Of(Op::kExp, x)));
}

// With d = 1 - exp(-|x|), sinh |x| is exp(|x|) d (2 - d) / 2. The exponential is applied as two factors,
// because it may overflow.
ValueId Sinh(Formula& f, ValueId x) {
  const ValueId size = f.Of(Op::kAbs, x);
  const ValueId fall = f.Fall(size);
  const ValueId half = f.Of(Op::kExp, f.Mul(size, f.Number(0.5)));
  const ValueId rest = f.Mul(f.Mul(fall, f.Sub(f.Number(2), fall)), f.Number(0.5));
  return f.WithSignOf(x, f.Mul(f.Mul(rest, half), half));
}

ValueId Cosh(Formula& f, ValueId x) {
  const ValueId size = f.Of(Op::kAbs, x);
  const ValueId two = f.Number(0.5);
  const ValueId half = f.Of(Op::kExp, f.Mul(size, two));
  const ValueId falling = f.Mul(f.Of(Op::kExp, f.Of(Op::kNeg, size)), two);
  return f.Add(f.Mul(f.Mul(half, two), half), falling);
}

// log1p(|x| + |x| / (1/|x| + sqrt(1/x^2 + 1))), which squares no large number.
ValueId Asinh(Formula& f, ValueId x) {
  const ValueId size = f.Of(Op::kAbs, x);
  const ValueId inverse = f.Div(f.Number(1), size);
  const ValueId root = f.Of(Op::kSqrt, f.Add(f.Mul(inverse, inverse), f.Number(1)));
  return f.WithSignOf(x, f.Log1p(f.Add(size, f.Div(size, f.Add(inverse, root)))));
}

// With t = x - 1, log1p(t + sqrt(t) sqrt(t + 2)).
ValueId Acosh(Formula& f, ValueId x) {
  const ValueId above = f.Sub(x, f.Number(1));
  const ValueId root = f.Mul(f.Of(Op::kSqrt, above), f.Of(Op::kSqrt, f.Add(above, f.Number(2))));
  return f.Log1p(f.Add(above, root));
}

// Half of log1p(2 |x| / (1 - |x|)).
ValueId Atanh(Formula& f, ValueId x) {
  const ValueId size = f.Of(Op::kAbs, x);
  const ValueId ratio = f.Div(f.Add(size, size), f.Sub(f.Number(1), size));
  return f.WithSignOf(x, f.Mul(f.Log1p(ratio), f.Number(0.5)));
}

// sqrt(1 - x^2): the other leg of a right triangle with hypotenuse 1.
ValueId OtherSide(Formula& f, ValueId x) {
  const ValueId one = f.Number(1);
  return f.Of(Op::kSqrt, f.Mul(f.Sub(one, x), f.Add(one, x)));
}

Status Asin(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Formula f(t, t.in_type(0).dtype);
  return t.Return(t.Value(Op::kAtan2, {t.in(0), OtherSide(f, t.in(0))}));
}

Status Acos(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Formula f(t, t.in_type(0).dtype);
  return t.Return(t.Value(Op::kAtan2, {OtherSide(f, t.in(0)), t.in(0)}));
}

}  // namespace

std::span<const TranslateRow> FunctionTable() {
  static constexpr TranslateRow kTable[] = {
      {"Log1p", Unary<Log1p>}, {"Softplus", Unary<Softplus>}, {"Expm1", Unary<Expm1>},
      {"Sinh", Unary<Sinh>},   {"Cosh", Unary<Cosh>},         {"Asinh", Unary<Asinh>},
      {"Acosh", Unary<Acosh>}, {"Atanh", Unary<Atanh>},       {"Asin", Asin},
      {"Acos", Acos},
  };
  return kTable;
}

}  // namespace fusebox::converter
