// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <gmock/gmock.h>
#include <pthreadpool.h>
#include <sys/wait.h>
#include <unistd.h>

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
  const auto start = std::chrono::steady_clock::now();
  std::set<std::thread::id> threads;  // on a busy machine, one of them may take both parts of a loop
  while (threads.size() < 2 && std::chrono::steady_clock::now() - start < 10s)
    threads.merge(ThreadsOf(pool->pool(), 2));
  std::atomic<bool> came = false, foreign = false;
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

// Runs `work`, which returns whether all is well, in a child of this process.
template <class F>
void ExpectInChild(F&& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

// Returns true if loops of kernels and of libraries run all their chunks.
bool LoopsRun(ThreadPool& pool, bool library) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::vector<int> runs(64);
    Loop(pool, 64, [&](uint32_t chunk, uint32_t) {
      const auto until = std::chrono::steady_clock::now() + 20us;
      while (std::chrono::steady_clock::now() < until) {
      }
      ++runs[chunk];
    });
    if (runs != std::vector<int>(64, 1)) return false;
    if (library && pool.pool() != nullptr && ThreadsOf(pool.pool(), 4).empty()) return false;
  }
  return true;
}

TEST(ThreadPool, ChildrenOfForksHaveTheirOwnThreads) {
  for (const bool library : {false, true}) {
    for (const bool ran : {false, true}) {
      const auto pool = *ThreadPool::Create(2);
      ASSERT_TRUE(!ran || LoopsRun(*pool, library));
      for (int child = 0; child < 3; ++child) ExpectInChild([&] { return LoopsRun(*pool, library); });
      EXPECT_TRUE(LoopsRun(*pool, library));
      ExpectInChild([&] {
        if (!LoopsRun(*pool, library)) return false;
        ExpectInChild([&] { return LoopsRun(*pool, library); });  // a grandchild
        return !testing::Test::HasFailure();
      });
    }
  }
}

TEST(ThreadPool, IsFreedInAChild) {
  auto pool = *ThreadPool::Create(2);
  EXPECT_TRUE(LoopsRun(*pool, true));
  ExpectInChild([&] {
    pool.reset();
    return true;
  });
}

TEST(ThreadPool, ChildrenMayForkWhileTheParentLoops) {
  const auto pool = *ThreadPool::Create(2);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) LoopsRun(*pool, false);
  });
  for (int child = 0; child < 20; ++child) ExpectInChild([&] { return LoopsRun(*pool, false); });
  stop = true;
  other.join();
}

}  // namespace
}  // namespace fusebox
