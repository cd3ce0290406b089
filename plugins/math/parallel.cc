// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/parallel.h"

namespace fusebox::math {
using namespace sdk;

void RunChunks(const fbx_host* host, size_t n, size_t grain, Chunk run, const void* f) {
  parallel_for(host, n, grain,
               [run, f](size_t begin, size_t end, uint32_t worker) { run(f, begin, end, worker); });
}

}  // namespace fusebox::math
