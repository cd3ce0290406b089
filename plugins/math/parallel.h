// SPDX-License-Identifier: Apache-2.0
// parallel_for with one copy of the loop's code: the SDK's inlines it twice, for one thread and for several.
#pragma once

#include <cstddef>
#include <cstdint>

#include <fusebox/kernel.hpp>

namespace fusebox::math {

using Chunk = void (*)(const void* f, size_t begin, size_t end, uint32_t worker);
void RunChunks(const fbx_host* host, size_t n, size_t grain, Chunk run, const void* f);

// Runs f(begin, end, worker) over [0, n) on the host's threads; rethrows the first exception of f.
template <class F>
void ParallelFor(const fbx_host* host, size_t n, size_t grain, const F& f) {
  RunChunks(
      host, n, grain,
      [](const void* f, size_t begin, size_t end, uint32_t worker) {
        (*static_cast<const F*>(f))(begin, end, worker);
      },
      &f);
}

}  // namespace fusebox::math
