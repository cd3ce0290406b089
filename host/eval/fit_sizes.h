// SPDX-License-Identifier: Apache-2.0
// Which sizes the results of an op are made of, found by running it at several sizes. Knows no op and no
// graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fusebox {

// The numbers that an op returns at these sizes of its symbols, the same count each time; nothing where it
// rejects the sizes.
using Sample = std::function<std::optional<std::vector<int64_t>>(std::span<const int64_t> sizes)>;
inline constexpr int64_t kNoNumber = INT64_MIN;  // in place of a number that is not known

// One number: factor * symbol + offset. Several symbols: sizes that are broadcast to one. No symbol: the same
// at all sizes tried.
struct Fit {
  std::vector<size_t> symbols;
  int64_t factor = 0, offset = 0;
};

// For each number what it is; nothing where the samples contradict every such form. Symbols that the op
// requires to be equal count as one. Empty: the op does not run at enough sizes. A number that rises with a
// symbol and nowhere deviates, from 0 up to huge sizes, is what its fit says for any op that clamps or
// rounds; a number that never changes is a constant only for ops that are monotonic, as shapes are.
std::vector<std::optional<Fit>> FitSizes(size_t symbols, const Sample&);

}  // namespace fusebox
