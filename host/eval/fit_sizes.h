// SPDX-License-Identifier: Apache-2.0
// Which sizes the results of an op are made of, found by running it at several sizes. Knows no op and no graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fusebox {

// The numbers that an op returns at these sizes of its symbols, the same count each time; nothing where it rejects the sizes.
using Sample = std::function<std::optional<std::vector<int64_t>>(std::span<const int64_t> sizes)>;
inline constexpr int64_t kNoNumber = INT64_MIN;  // in place of a number that is not known

// One number: factor * symbol + offset. Several symbols: sizes that are broadcast to one. No symbol: the offset.
struct Fit {
  std::vector<size_t> symbols;
  int64_t factor = 0, offset = 0;
};

enum class Sampled {
  kShapes,   // shapes: each op's are monotonic in every size, so that a number which never changes is a constant
  kIntegers  // values: may be of any sign, and a number that never changes proves nothing
};

// For each number what it is, at all sizes; nothing where this is not certain. Symbols that the op requires to be equal count as one.
// Empty: nothing is certain. At most kMostSymbols.
inline constexpr size_t kMostSymbols = 24;
std::vector<std::optional<Fit>> FitSizes(size_t symbols, Sampled, const Sample&);

}  // namespace fusebox
