// SPDX-License-Identifier: Apache-2.0
// The rows of a batch on the host's threads, each thread with scratch of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fusebox/kernel.hpp>

namespace fusebox::rnn {

// How many parts of scratch there are for that many threads.
inline size_t ScratchRows(int64_t batch, uint32_t threads) {
  return static_cast<size_t>(std::clamp<int64_t>(batch, 1, std::max<uint32_t>(threads, 1)));
}

// run(begin, end, scratch) over the rows, once for each part of scratch at most; a part has `bytes` bytes.
// Scratch goes by the part and not by the thread: any thread of the host may run any part, and there may be
// more threads than parts.
template <class Run>
void ForRows(const Node& node, int64_t batch, uint32_t threads, std::byte* scratch, size_t bytes,
             const Run& run) {
  const auto parts = static_cast<int64_t>(ScratchRows(batch, threads));
  const int64_t rows = std::max<int64_t>((batch + parts - 1) / parts, 1);
  parallel_for(node.host(), static_cast<size_t>(parts), 1, [&](size_t first, size_t last, uint32_t) {
    for (size_t part = first; part < last; ++part) {
      const int64_t begin = static_cast<int64_t>(part) * rows, end = std::min(begin + rows, batch);
      if (begin < end) run(begin, end, scratch + part * bytes);
    }
  });
}

}  // namespace fusebox::rnn
