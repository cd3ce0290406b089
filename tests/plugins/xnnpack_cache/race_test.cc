// SPDX-License-Identifier: Apache-2.0
// Several processes on one store.
#include <unistd.h>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/home.h"
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
        const auto home = Home::Open(path(), true, false, why);
        const Fd lock = Lock(home->side.get(), "lock", 10'000);
        if (lock) Collect(*home, {.max_bytes = 1});
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
    const auto home = Home::Open(path(), true, false, why);
    const Fd lock = Lock(home->side.get(), "lock", 0);
    raise(SIGKILL);
  }
  int status;
  waitpid(child, &status, 0);
  Start(In(path()), 0, kSome);
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
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
