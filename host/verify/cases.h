// SPDX-License-Identifier: Apache-2.0
// Operands for verification: value classes, and copies of the body in f64.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::verify {

enum class ValueClass { kNormal, kTiny, kLarge, kZero, kOneHot, kExtreme };
std::string_view Name(ValueClass);
// Returns all value classes, or the classes of a quick check.
std::vector<ValueClass> ValueClasses(bool all);

// A tensor of a static type. Equal class, seed and operand give equal values. Integers with scales have
// values of their whole range, others are small.
Tensor MakeOperand(const Type& type, ValueClass, uint64_t seed, size_t operand, const Quant* = nullptr);

// Replaces f32 by f64 everywhere: values, constants, type attributes.
void RetypeToF64(Module&);
// Then: the numbers that quantized weights of ops on floats stand for, in f64.
void RetypeWeightsToF64(Module&);
Tensor ToF64(const Tensor&);

}  // namespace fusebox::verify
