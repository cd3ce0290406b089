// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace fusebox {
namespace {

// Cores available to this process. Queried once.
uint32_t Cores() {
  static const uint32_t cores = [] {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return allowed > 0 ? static_cast<uint32_t>(allowed) : std::max(1u, std::thread::hardware_concurrency());
  }();
  return cores;
}

}  // namespace

// Threads of libraries spin while they wait: with more threads than cores, the awaited thread may not run.
Result<std::shared_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  if (threads < 0 || threads > 1024)
    return Invalid(fmt::format("{} threads, expected 0 (one per core) to 1024", threads));
  const uint32_t count = threads > 0 ? std::min(static_cast<uint32_t>(threads), Cores()) : Cores();
  return std::shared_ptr<ThreadPool>(new ThreadPool(count));
}

ThreadPool::ThreadPool(uint32_t count) : count_(count), workers_(count - 1), library_(count) {}

void ThreadPool::Run(uint32_t chunks, Workers::Chunk run, void* context) {
  if (library_.started()) library_.Run(chunks, run, context);
  else workers_.Run(chunks, run, context);
}

::pthreadpool* ThreadPool::pool() { return count_ > 1 ? library_.Start() : nullptr; }

}  // namespace fusebox
