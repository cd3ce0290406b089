// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum.
#pragma once

#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox::converter {

// One letter per dimension, unique within an operand; each letter of the result occurs in an operand.
struct Equation {
  std::string left, right, result;
  bool one = false;  // a single operand
};

// `ranks`: ranks of the operands, used to expand "..." to letters. A missing result follows NumPy's rule.
Result<Equation> ParseEquation(const std::string& text, std::span<const int> ranks);

}  // namespace fusebox::converter
