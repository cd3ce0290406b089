// SPDX-License-Identifier: Apache-2.0
// ThreadPool: threads that several sessions share, also those that run at the same time. Any thread.
//
// Kernels and libraries such as XNNPACK have threads of their own. They start with the first loop and end
// with the last session. A session does not wait for the threads of kernels: while another one uses them, its
// loops run on the calling thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "host/base/status.h"

struct pthreadpool;

namespace fusebox {

class Workers;

class ThreadPool {
 public:
  // `threads`: maximum of one loop, including the calling thread; 0, or more than there are: one per core of
  // the process. Error: below 0, or above 1024.
  static Result<std::shared_ptr<ThreadPool>> Create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  int threads() const { return static_cast<int>(count_); }
  Workers* workers() { return workers_.get(); }  // for kernels; null with one thread
  ::pthreadpool* pool();                         // for libraries; null with one thread

 private:
  explicit ThreadPool(uint32_t count);
  uint32_t count_;
  std::unique_ptr<Workers> workers_;
  std::once_flag started_;
  ::pthreadpool* pool_ = nullptr;
};

}  // namespace fusebox
