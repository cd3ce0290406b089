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

// run(begin, end, scratch) over the rows, at most as often as there are parts; a part has `bytes` bytes.
template <class Run>
void ForRows(const Node& node, int64_t batch, uint32_t threads, std::byte* scratch, size_t bytes,
             const Run& run) {
  const size_t parts = ScratchRows(batch, threads), rows = static_cast<size_t>(batch);
  parallel_for(node.host(), rows, std::max<size_t>((rows + parts - 1) / parts, 1),
               [&](size_t begin, size_t end, uint32_t worker) {
                 run(static_cast<int64_t>(begin), static_cast<int64_t>(end), scratch + worker * bytes);
               });
}

}  // namespace fusebox::rnn
