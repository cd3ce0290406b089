// SPDX-License-Identifier: Apache-2.0
// The operands of a proof: value classes, and the copies of a body that it is run in.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::verify {

enum class ValueClass { kNormal, kTiny, kLarge, kZero, kOneHot, kExtreme };
std::string_view Name(ValueClass);
// All of them, or those that a quick look takes.
std::vector<ValueClass> ValueClasses(bool all);

// A tensor of that (static) type. The same class, seed and operand give the same values.
Tensor MakeOperand(const Type& type, ValueClass, uint64_t seed, size_t operand);

// f32 as f64, everywhere: values, constants, attributes that name a type.
void RetypeToF64(Module&);
Tensor ToF64(const Tensor&);
// Elements as doubles; empty for strings and the like.
std::vector<double> ToDoubles(const Tensor&);

}  // namespace fusebox::verify
