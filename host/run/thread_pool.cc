// SPDX-License-Identifier: Apache-2.0
#include "host/run/thread_pool.h"

#include <fmt/format.h>
#include <pthreadpool.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "host/run/workers.h"

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

ThreadPool::ThreadPool(uint32_t count)
    : count_(count), workers_(count > 1 ? std::make_unique<Workers>(count - 1) : nullptr) {}

ThreadPool::~ThreadPool() {
  if (pool_ != nullptr) pthreadpool_destroy(pool_);
}

::pthreadpool* ThreadPool::pool() {
  if (count_ > 1) std::call_once(started_, [this] { pool_ = pthreadpool_create(count_); });
  return pool_;
}

}  // namespace fusebox
