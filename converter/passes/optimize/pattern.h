// SPDX-License-Identifier: Apache-2.0
// Patterns of ops, written as formulas: 0.5 * x * (1 + tanh(x)), where x is Pattern::Var(0).
//
// `*`, and `/` by a number, make a product. It matches any nest of MUL, SQUARE, POW by 3 and DIV by a number.
// ADD, MUL and MAXIMUM match in either order. An activation also matches as the fused activation of the op
// before it; other ops must not have one.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {

struct Pattern {
  Pattern(double number) : number(number) {}  // a constant of one element, within 1e-5 of its value
  Pattern(Op op, std::vector<Pattern> parts, std::string_view composite = {})
      : kind(kOp), op(op), composite(composite), parts(std::move(parts)) {}
  static Pattern Var(double index);  // any value, but the same one wherever the variable occurs

  enum { kProduct, kVar, kOp } kind = kProduct;
  double number = 1;  // the constant factors of a product; the index of a variable
  Op op{};
  std::string_view composite;  // the name of an internal composite
  std::vector<Pattern> parts;  // factors or operands
};
Pattern operator*(const Pattern&, const Pattern&);
inline Pattern operator/(const Pattern& a, double b) { return a * (1 / b); }
inline Pattern operator+(const Pattern& a, const Pattern& b) { return {Op::kAdd, {a, b}}; }
inline Pattern operator-(const Pattern& a, const Pattern& b) { return {Op::kSub, {a, b}}; }
inline Pattern operator-(const Pattern& a) { return {Op::kNeg, {a}}; }

using Matched = std::array<ValueId, 2>;  // the values of variables 0 and 1
std::optional<Matched> Match(const Edit&, ValueId v, const Pattern&);

}  // namespace fusebox::converter::optimize
