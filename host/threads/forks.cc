// SPDX-License-Identifier: Apache-2.0
#include "host/threads/forks.h"

#include <pthread.h>

#include <atomic>

namespace fusebox {
namespace {

std::atomic<uint32_t> forks = 0;

}  // namespace

uint32_t Forks() {
  // Without memory for the handler, a child behaves as if it had threads.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace fusebox
