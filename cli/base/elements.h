// SPDX-License-Identifier: Apache-2.0
// A tensor's elements as numbers and text, for all types.
#pragma once

#include <complex>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

// Holds every element type without rounding, including i64 and u64.
using Number = std::complex<long double>;

// Number of elements; 0 if type or shape has no known size.
size_t ElementCount(const Tensor& tensor);
// Element `index` in memory order. Not for strings and resources. Packed types: low bits first.
Number ElementAt(const Tensor& tensor, size_t index);

// The first `limit` elements, also strings: "[0.25, -1, ...]", a JSON array.
Result<std::string> FirstElements(const Tensor& tensor, size_t limit);
Result<nlohmann::ordered_json> FirstElementsJson(const Tensor& tensor, size_t limit);

}  // namespace fusebox::cli
