// SPDX-License-Identifier: Apache-2.0
// LibraryThreads: the threads of libraries such as XNNPACK, a pthreadpool. Any thread.
//
// After a library's work its threads spin for milliseconds, on the cores that the threads of kernels would
// need. So when they have started, loops of kernels run on them too.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "host/threads/patience.h"
#include "host/threads/workers.h"

struct pthreadpool;

namespace fusebox {

class LibraryThreads {
 public:
  // `count`: threads of a loop, including its caller.
  explicit LibraryThreads(uint32_t count) : count_(count) {}
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;

  ::pthreadpool* Start();  // with the first call
  bool started() const { return pool_.load(std::memory_order_acquire) != nullptr; }

  // As Workers::Run, after Start(). Waits for threads that do not run, as libraries do, but then runs loops
  // on their caller for some time.
  void Run(uint32_t chunks, Workers::Chunk run, void* context);

 private:
  const uint32_t count_;
  std::once_flag once_;
  std::atomic<::pthreadpool*> pool_ = nullptr;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // Used by the caller whose loop runs. A library waits for the same thread anyway, so that a long rest gains
  // little.
  Patience patience_{1};
};

}  // namespace fusebox
