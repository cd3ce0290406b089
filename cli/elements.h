// SPDX-License-Identifier: Apache-2.0
// A tensor's elements as numbers and as text, whatever their type.
#pragma once

#include <complex>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

// Wide enough for every element type without rounding, i64 and u64 included.
using Number = std::complex<long double>;

// Elements that the tensor holds; 0 for a type or shape of no known size.
size_t ElementCount(const Tensor& tensor);
// Element `index` in memory order. Not for strings and resources. Packed types are taken low bits first.
Number ElementAt(const Tensor& tensor, size_t index);

// The first `limit` elements, strings too: "[0.25, -1, ...]", and as a JSON array.
Result<std::string> FirstElements(const Tensor& tensor, size_t limit);
Result<nlohmann::ordered_json> FirstElementsJson(const Tensor& tensor, size_t limit);

}  // namespace fusebox::cli
