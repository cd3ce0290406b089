// SPDX-License-Identifier: Apache-2.0
// Which sizes the results of an op depend on, found by running it at several sizes. Knows no op and no graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fusebox {

// The numbers that an op returns at these sizes of its symbols. Nothing: it rejects the sizes.
using Sample = std::function<std::optional<std::vector<int64_t>>(std::span<const int64_t> sizes)>;
inline constexpr int64_t kNoNumber = INT64_MIN;  // in place of a number that is not known

// One number: factor * symbol + offset. Several symbols: the size that they are broadcast to. No symbol: the
// number was the same at all sizes.
struct Fit {
  std::vector<size_t> symbols;
  int64_t factor = 0, offset = 0;
};

// A fit for each number; nothing if the samples contradict every such form. Symbols that the op requires to
// be equal count as one. Empty: the op does not run at enough sizes.
//
// Sizes from 0 up to huge ones are sampled, so that an op that clamps or rounds does not pass for one that
// does not. A number that never changes is a constant only if the op is monotonic in its sizes, as inferred
// shapes are.
std::vector<std::optional<Fit>> FitSizes(size_t symbols, const Sample&);

}  // namespace fusebox
