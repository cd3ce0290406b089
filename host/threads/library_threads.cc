// SPDX-License-Identifier: Apache-2.0
#include "host/threads/library_threads.h"

#include <pthreadpool.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace fusebox {
namespace {

struct Loop {
  Workers::Chunk run;
  void* context;
  Patience::Clock::time_point ran;  // when the caller's last chunk ended
};

void RunChunk(void* context, size_t thread, size_t chunk) {
  auto& loop = *static_cast<Loop*>(context);
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&loop);  // the sanitizer does not see into the library
#endif
  loop.run(loop.context, static_cast<uint32_t>(chunk), static_cast<uint32_t>(thread));
  if (thread == 0) loop.ran = Patience::Clock::now();
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&loop);
#endif
}

}  // namespace

LibraryThreads::~LibraryThreads() {
  if (pool_ != nullptr) pthreadpool_destroy(pool_);
}

::pthreadpool* LibraryThreads::Start() {
  std::call_once(once_, [this] { pool_.store(pthreadpool_create(count_), std::memory_order_release); });
  return pool_;
}

void LibraryThreads::Run(uint32_t chunks, Workers::Chunk run, void* context) {
  const auto alone = [&] {
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) run(context, chunk, 0);
  };
  if (busy_.test_and_set(std::memory_order_acquire)) return alone();
  const auto start = Patience::Clock::now();
  if (patience_.rests(start)) {
    busy_.clear(std::memory_order_release);
    return alone();
  }
  Loop loop{run, context, start};
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&loop);
#endif
  pthreadpool_parallelize_1d_with_thread(pool_, RunChunk, &loop, chunks, 0);
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&loop);
#endif
  patience_.Waited(loop.ran, Patience::Clock::now(), loop.ran - start);
  busy_.clear(std::memory_order_release);
}

}  // namespace fusebox
