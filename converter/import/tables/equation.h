// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum.
#pragma once

#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox::converter {

// A letter for each dimension; none stands twice in one list, and the result has none of its own.
struct Equation {
  std::string left, right, result;
  bool one = false;  // a single operand
};

// `ranks` are those of the operands, by which "..." becomes letters. A result that is not named follows
// numpy's rule.
Result<Equation> ParseEquation(const std::string& text, std::span<const int> ranks);

}  // namespace fusebox::converter
