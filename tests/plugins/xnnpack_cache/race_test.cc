// SPDX-License-Identifier: Apache-2.0
// Several processes on one store.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/store_dirs.h"
#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

class Race : public StoreTest {
 protected:
  // Starts them together; each returns 0 when all was right.
  void RunTogether(int processes, const std::function<int(int)>& body) {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        close(gate[1]);
        char go;
        if (read(gate[0], &go, 1) < 0) _exit(98);
        const int status = body(i);
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 99 : status);
      }
      children.push_back(child);
    }
    close(gate[0]);
    close(gate[1]);
    for (const pid_t child : children) {
      int status;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
  }
};

TEST_F(Race, SixteenColdProcessesLeaveOneSegment) {
  for (int round = 0; round < (LongTests() ? 50 : 3); ++round) {
    const std::string path = directory_ + "/store" + std::to_string(round);
    RunTogether(16, [&](int) {
      Start(In(path), 0, kSome);
      return 0;
    });
    EXPECT_EQ(FilesBelow(path, ".fbpk").size(), 1u);
    EXPECT_TRUE(FilesBelow(path + "/tmp").empty());
    EXPECT_EQ(Start(In(path), 0, kSome), kSome);
  }
}

TEST_F(Race, SixteenColdProcessesOnOneFileLoseNothing) {
  for (int round = 0; round < (LongTests() ? 50 : 3); ++round) {
    const std::string path = directory_ + "/store" + std::to_string(round) + ".fbpk";
    // Four models that share half of their weights with the next.
    RunTogether(16, [&](int i) {
      Start(In(path), i % 4 * 3, i % 4 * 3 + 6);
      return 0;
    });
    EXPECT_EQ(Start(In(path), 0, 15), 15);
    uint64_t packed = 0;
    for (int i = 0; i < 15; ++i) packed += SizeOf(i);
    EXPECT_LT(BytesBelow(directory_, std::to_string(round) + ".fbpk"), packed + packed / 50 + 20'000);
  }
}

TEST_F(Race, BuildersReadersAndCollectorsGetOn) {
  Start(In(path()), 0, kSome);
  const int rounds = LongTests() ? 100 : 6;
  RunTogether(8, [&](int i) {
    for (int round = 0; round < rounds; ++round) {
      if (i % 4 == 0) {
        Note why;
        const auto dirs = StoreDirs::Open(path(), true, why);
        const Fd lock = Lock(dirs->side.get(), "lock", 10'000);
        if (lock) Collect(*dirs, {.max_bytes = 1});
      } else {
        Start(In(path()), i, i + kSome, static_cast<uint64_t>(round % 2 + 1));
      }
    }
    return 0;
  });
  Start(In(path()), 0, kSome);
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
}

TEST_F(Race, ABuilderThatIsKilledHoldsNobodyUp) {
  const pid_t child = fork();
  if (child == 0) {
    const auto store = Store::Open(In(path()));
    const auto writer = store->NewWriter();
    std::memset(writer->Reserve(1 << 20), 1, 1 << 20);
    Note why;
    const auto dirs = StoreDirs::Open(path(), true, why);
    const Fd lock = Lock(dirs->side.get(), "lock", 0);
    raise(SIGKILL);
  }
  int status;
  waitpid(child, &status, 0);
  Start(In(path()), 0, kSome);
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
}

// One cold start as the delegate does it: claims at the first miss, packs slowly. Counts those that packed.
int ColdStart(const Options& options, std::atomic<int>& packers) {
  const auto store = Store::Open(options);
  const auto writer = store->NewWriter();
  if (!store->Lookup(KeyOf(0)) && !writer->Claim(KeyOf(0))) {
    ++packers;
    usleep(100'000);
    for (int i = 0; i < kSome; ++i) {
      const std::vector<std::byte> bytes = BytesOf(i);
      std::byte* const at = writer->Reserve(bytes.size());
      std::memcpy(at, bytes.data(), bytes.size());
      writer->Commit(KeyOf(i), at, bytes.size(), {.seed = static_cast<uint32_t>(i)});
    }
    writer->Publish();
  }
  EXPECT_EQ(CountHits(*store, 0, kSome), kSome);
  return 0;
}

std::atomic<int>& SharedCounter() {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (page) std::atomic<int>(0);
}

TEST_F(Race, OfManyColdProcessesOnePacksAndTheOthersWait) {
  for (const std::string& where : {path(), file_path()}) {
    std::atomic<int>& packers = SharedCounter();
    RunTogether(8, [&](int) { return ColdStart(In(where), packers); });
    EXPECT_EQ(packers, 1) << where;
  }
}

TEST_F(Race, WhereLocksDoNotWorkAllPackAndOneSegmentRemains) {
  std::atomic<int>& packers = SharedCounter();
  RunTogether(4, [&](int) {
    hooks = {.fail = "turn", .error = EINVAL};
    return ColdStart(In(path()), packers);
  });
  EXPECT_GT(packers, 1);
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 1u);
}

TEST_F(Race, AKilledPackerHandsItsTurnOn) {
  std::atomic<int>& packers = SharedCounter();
  const pid_t child = fork();
  if (child == 0) {
    const auto store = Store::Open(In(path()));
    const auto writer = store->NewWriter();
    writer->Claim(KeyOf(0));
    ++packers;
    pause();
  }
  while (packers == 0) usleep(1000);
  const pid_t killer = fork();
  if (killer == 0) {
    usleep(200'000);
    kill(child, SIGKILL);
    _exit(0);
  }
  const auto begin = std::chrono::steady_clock::now();
  RunTogether(6, [&](int) { return ColdStart(In(path()), packers); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(packers, 2);
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 1u);
  int status;
  waitpid(child, &status, 0);
  waitpid(killer, &status, 0);
}

TEST_F(Race, APackerThatHangsIsWaitedForOnlySoLong) {
  std::atomic<int>& packers = SharedCounter();
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = Store::Open(In(path()))->NewWriter();
    writer->Claim(KeyOf(0));
    ++packers;
    pause();
  }
  while (packers == 0) usleep(1000);
  tuning.build_wait_ms = 50;
  const auto store = Store::Open(In(path()));
  const auto writer = store->NewWriter();
  EXPECT_FALSE(writer->Claim(KeyOf(0)));
  const std::vector<std::byte> bytes = BytesOf(0);
  std::byte* const at = writer->Reserve(bytes.size());
  std::memcpy(at, bytes.data(), bytes.size());
  EXPECT_TRUE(Right(writer->Commit(KeyOf(0), at, bytes.size(), {}), 0));
  writer->Publish();
  store->Flush();
  EXPECT_EQ(writer->rung(), Rung::kMemory);
  EXPECT_EQ(store->stats().fallback_reason, "busy");
  EXPECT_TRUE(FilesBelow(path(), ".fbpk").empty());
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
}

TEST_F(Race, SessionsOfOneProcessDoNotWaitForEachOther) {
  const auto store = Store::Open(In(path()));
  const auto first = store->NewWriter(), second = store->NewWriter();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(first->Claim(KeyOf(0)));
  EXPECT_FALSE(second->Claim(KeyOf(0)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(store->stats().fallback_reason, "");
}

TEST_F(Race, AStoreOutlivesAFork) {
  const auto store = Store::Open(In(path()));
  ASSERT_TRUE(Pack(*store, 0, kSome));
  const Blob blob = *store->Lookup(KeyOf(1));
  EXPECT_EQ(InChild([&] {
              EXPECT_TRUE(Right(blob, 1));
              EXPECT_EQ(CountHits(*store, 0, kSome), kSome);
              EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
              return 0;
            }),
            0);
}

TEST_F(Race, AFileThatIsReplacedStaysValidForThoseWhoHaveIt) {
  const Options options = In(file_path());
  const auto store = Store::Open(options);
  ASSERT_TRUE(Pack(*store, 0, 3));
  const Blob blob = *store->Lookup(KeyOf(2));
  EXPECT_EQ(InChild([&] {
              Start(options, 3, 6);
              return 0;
            }),
            0);
  EXPECT_TRUE(Right(blob, 2));
  // A long-lived process sees what others have published when it opens the next model.
  EXPECT_EQ(CountHits(*Store::Open(options), 0, 6), 6);
}

}  // namespace
}  // namespace fusebox::cache
