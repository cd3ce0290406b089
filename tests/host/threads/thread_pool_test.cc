// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <gmock/gmock.h>
#include <pthreadpool.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace fusebox {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

template <class F>
void Loop(ThreadPool& pool, uint32_t chunks, F&& f) {
  pool.Run(
      chunks,
      [](void* context, uint32_t chunk, uint32_t worker) {
        (*static_cast<std::remove_reference_t<F>*>(context))(chunk, worker);
      },
      &f);
}

// The threads of a loop of the library.
std::set<std::thread::id> ThreadsOf(::pthreadpool* pool, uint32_t count) {
  std::vector<std::thread::id> ids(count);
  pthreadpool_parallelize_1d(
      pool,
      [](void* to, size_t i) {
        static_cast<std::thread::id*>(to)[i] = std::this_thread::get_id();
        std::this_thread::sleep_for(2ms);
      },
      ids.data(), count, 0);
  return {ids.begin(), ids.end()};
}

TEST(ThreadPool, RunsEachChunkOnceBeforeAndAfterALibraryStarts) {
  const auto pool = *ThreadPool::Create(2);
  for (const bool library : {false, true}) {
    if (library) pool->pool();
    for (int repeat = 0; repeat < 100; ++repeat) {
      for (const uint32_t chunks : {1u, 2u, 3u, 64u}) {
        std::vector<int> runs(chunks);  // not atomic: the end of a loop makes them visible
        std::atomic<bool> in_range = true;
        Loop(*pool, chunks, [&](uint32_t chunk, uint32_t worker) {
          ++runs[chunk];
          if (worker >= static_cast<uint32_t>(pool->threads())) in_range = false;
        });
        ASSERT_THAT(runs, Each(1));
        ASSERT_TRUE(in_range);
      }
    }
  }
}

// Otherwise both kinds of threads would share the cores.
TEST(ThreadPool, KernelsUseTheThreadsOfALibrary) {
  const auto pool = *ThreadPool::Create(2);
  if (pool->threads() == 1) GTEST_SKIP() << "this process has one core";
  const std::set<std::thread::id> threads = ThreadsOf(pool->pool(), 2);
  std::atomic<bool> came = false, foreign = false;
  const auto start = std::chrono::steady_clock::now();
  while (!came && std::chrono::steady_clock::now() - start < 10s) {
    Loop(*pool, 2, [&](uint32_t, uint32_t worker) {
      if (worker > 0) came = true;
      if (!threads.contains(std::this_thread::get_id())) foreign = true;
      std::this_thread::sleep_for(200us);
    });
  }
  EXPECT_TRUE(came);
  EXPECT_FALSE(foreign);
}

TEST(ThreadPool, LoopsRunOnTheirCallerWhileAnotherOneRuns) {
  const auto pool = *ThreadPool::Create(2);
  pool->pool();
  std::atomic<bool> begun = false, end = false;
  std::thread other([&] {
    Loop(*pool, 2, [&](uint32_t, uint32_t) {
      begun = true;
      while (!end) std::this_thread::yield();
    });
  });
  while (!begun) std::this_thread::yield();
  std::vector<std::thread::id> ids(3);
  Loop(*pool, 3, [&](uint32_t chunk, uint32_t) { ids[chunk] = std::this_thread::get_id(); });
  end = true;
  other.join();
  EXPECT_THAT(ids, Each(std::this_thread::get_id()));
}

}  // namespace
}  // namespace fusebox
