// SPDX-License-Identifier: Apache-2.0
#include "host/threads/workers.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace fusebox {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

// Runs a loop of f(chunk, worker).
template <class F>
void Loop(Workers& workers, uint32_t chunks, F&& f) {
  workers.Run(
      chunks,
      [](void* context, uint32_t chunk, uint32_t worker) {
        (*static_cast<std::remove_reference_t<F>*>(context))(chunk, worker);
      },
      &f);
}

// Whether a chunk of a loop runs on a worker, tried for up to 10 s.
bool AWorkerComes(Workers& workers) {
  std::atomic<bool> came = false;
  const auto start = std::chrono::steady_clock::now();
  while (!came && std::chrono::steady_clock::now() - start < 10s) {
    Loop(workers, 2, [&](uint32_t, uint32_t worker) {
      if (worker > 0) came = true;
      std::this_thread::sleep_for(20us);
    });
  }
  return came;
}

TEST(Workers, RunEachChunkOnceInLoopsOfAnySize) {
  for (const uint32_t count : {1u, 3u, 7u}) {
    Workers workers(count);
    for (int repeat = 0; repeat < 30; ++repeat) {
      for (const uint32_t chunks : {1u, 2u, 3u, 5u, 8u, 64u, 1000u}) {
        std::vector<int> runs(chunks);  // not atomic: the end of a loop makes them visible
        std::atomic<bool> in_range = true;
        Loop(workers, chunks, [&](uint32_t chunk, uint32_t worker) {
          ++runs[chunk];
          if (worker > count) in_range = false;
        });
        ASSERT_THAT(runs, Each(1)) << chunks << " chunks";
        ASSERT_TRUE(in_range);
      }
    }
  }
}

TEST(Workers, NeverRunTwoChunksOfOneWorkerAtATime) {
  Workers workers(3);
  std::atomic<int> running[4] = {}, most = 0;
  for (int repeat = 0; repeat < 500; ++repeat) {
    Loop(workers, 50, [&](uint32_t, uint32_t worker) {
      if (++running[worker] > 1) ++most;
      std::this_thread::yield();
      --running[worker];
    });
  }
  EXPECT_EQ(most, 0);
}

// The caller runs chunk 0 until all others have run: a worker takes also those of the caller's share.
TEST(Workers, TakeChunksFromThoseThatAreLate) {
  Workers workers(1);
  bool taken = false;
  const auto start = std::chrono::steady_clock::now();
  while (!taken && std::chrono::steady_clock::now() - start < 10s) {
    std::atomic<int> others = 0;
    Loop(workers, 16, [&](uint32_t chunk, uint32_t) {
      const auto begin = std::chrono::steady_clock::now();
      if (chunk > 0) ++others;
      else
        while (others < 15 && std::chrono::steady_clock::now() - begin < 20ms) std::this_thread::yield();
      if (chunk == 0) taken = others == 15;
    });
  }
  EXPECT_TRUE(taken);
}

TEST(Workers, WakeForALoopAfterAPause) {
  Workers workers(2);
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_TRUE(AWorkerComes(workers));
    std::this_thread::sleep_for(2ms);
  }
}

TEST(Workers, RestAfterTheCallerHadToWait) {
  Workers workers(1);
  bool waited = false;
  for (int repeat = 0; repeat < 1000 && !waited; ++repeat) {
    Loop(workers, 2, [&](uint32_t, uint32_t worker) {
      if (worker > 0) waited = true;
      std::this_thread::sleep_for(worker > 0 ? 100ms : 20us);
    });
  }
  ASSERT_TRUE(waited);
  std::atomic<int> on_workers = 0;
  for (int repeat = 0; repeat < 10; ++repeat) {
    Loop(workers, 2, [&](uint32_t, uint32_t worker) {
      on_workers += worker > 0;
      std::this_thread::sleep_for(100us);
    });
  }
  EXPECT_EQ(on_workers, 0);
}

TEST(Workers, ServeSeveralCallersAtOnce) {
  Workers workers(2);
  std::atomic<int> chunks = 0;
  const auto work = [&] {
    for (int repeat = 0; repeat < 300; ++repeat) {
      std::vector<int> runs(20);
      Loop(workers, 20, [&](uint32_t chunk, uint32_t) { ++runs[chunk]; });
      for (const int n : runs) chunks += n == 1;
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back(work);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(chunks, 4 * 300 * 20);
}

}  // namespace
}  // namespace fusebox
