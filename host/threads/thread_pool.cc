// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/threads/cores.h"
#include "host/threads/forks.h"

namespace fusebox {

// Threads of libraries spin while they wait: with more threads than cores, the awaited thread may not run.
Result<std::shared_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  if (threads < 0 || threads > 1024)
    return Invalid(fmt::format("{} threads, expected 0 (one per core) to 1024", threads));
  if (threads == 1) return std::shared_ptr<ThreadPool>(new ThreadPool(1));
  static const uint32_t cores = AvailableCores("/");
  const uint32_t count = threads > 0 ? std::min(static_cast<uint32_t>(threads), cores) : cores;
  return std::shared_ptr<ThreadPool>(new ThreadPool(count));
}

ThreadPool::Team::Team(uint32_t count) : forks(Forks()), workers(count - 1), library(count) {}

ThreadPool::ThreadPool(uint32_t count) : count_(count), team_(new Team(count)) {}

ThreadPool::~ThreadPool() {
  Team* const team = team_;
  if (team->forks == Forks()) delete team;  // else it would wait for threads that do not exist
}

// A team of the parent is left as it is: nothing can be freed without its threads.
ThreadPool::Team& ThreadPool::team() {
  Team* team = team_.load(std::memory_order_acquire);
  if (team->forks == Forks()) [[likely]]
    return *team;
  auto fresh = std::make_unique<Team>(count_);
  if (team_.compare_exchange_strong(team, fresh.get(), std::memory_order_acq_rel)) team = fresh.release();
  return *team;
}

void ThreadPool::Run(uint32_t chunks, Workers::Chunk run, void* context) {
  Team& threads = team();
  if (threads.library.started()) threads.library.Run(chunks, run, context);
  else threads.workers.Run(chunks, run, context);
}

::pthreadpool* ThreadPool::pool() { return count_ > 1 ? team().library.Start() : nullptr; }

}  // namespace fusebox
