// SPDX-License-Identifier: Apache-2.0
// Finds which sizes the results of an op depend on, by running it at several sizes. Independent of op and
// graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fusebox {

// Returns the numbers that an op returns for these sizes of its symbols, or nothing if it rejects the sizes.
using Sample = std::function<std::optional<std::vector<int64_t>>(std::span<const int64_t> sizes)>;
inline constexpr int64_t kNoNumber = INT64_MIN;  // an unknown number

// One number: factor * symbol + offset. Several symbols: their broadcast size. No symbol: a constant number.
struct Fit {
  std::vector<size_t> symbols;
  int64_t factor = 0;
  int64_t offset = 0;
};

// Returns a fit for each number, or nothing for a number whose samples contradict every such form. Symbols
// that the op requires to be equal count as one. Returns an empty list if the op runs at too few sizes.
//
// Samples range from 0 to huge sizes, so that clamping and rounding are detected. A number that never changes
// is a constant only if the op is monotonic in its sizes, as inferred shapes are.
std::vector<std::optional<Fit>> FitSizes(size_t symbols, const Sample&);

}  // namespace fusebox
