// SPDX-License-Identifier: Apache-2.0
// Changes of a model that the reader does not reject at once: dims with data of that size, element types,
// scales, options, operands, ops.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace fusebox::fuzz {

// The .tflite file, changed in one to four places. Empty: the bytes are no model, or the result cannot be
// written.
std::string Mutated(std::string_view file, std::mt19937_64& random);

}  // namespace fusebox::fuzz
