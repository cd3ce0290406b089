// SPDX-License-Identifier: Apache-2.0
// ThreadPool: threads that several sessions share, also those that run at the same time. Any thread.
//
// Kernels and libraries such as XNNPACK have separate threads, which start with the first loop and end
// with the last session. Once threads of libraries have started, kernels use them as well. A session does not
// wait for the threads of kernels: while another one uses them, its loops run on the calling thread.
//
// The child of a fork has no threads: its first loop starts new ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/base/status.h"
#include "host/threads/library_threads.h"
#include "host/threads/workers.h"

namespace fusebox {

class ThreadPool {
 public:
  // `threads`: maximum of one loop, including the calling thread; 0, or more than there are: one per core of
  // the process (cores.h). Error: below 0, or above 1024.
  static Result<std::shared_ptr<ThreadPool>> Create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  int threads() const { return static_cast<int>(count_); }
  // For kernels: as Workers::Run; `chunks` above 0.
  void Run(uint32_t chunks, Workers::Chunk run, void* context);
  ::pthreadpool* pool();  // for libraries; null with one thread. A child of a fork has another one

 private:
  explicit ThreadPool(uint32_t count);
  // All threads of one process.
  struct Team {
    explicit Team(uint32_t count);
    const uint32_t forks;
    Workers workers;
    LibraryThreads library;
  };
  Team& team();
  const uint32_t count_;
  std::atomic<Team*> team_;
};

}  // namespace fusebox
