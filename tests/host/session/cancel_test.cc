// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using run::Floats;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;

// Runs, and cancels from another thread once a probe is entered (or after some milliseconds).
Status RunCancelled(Session& session, bool wait_for_probe) {
  const int before = probe::entered;
  std::thread other([&] {
    if (!wait_for_probe) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    while (wait_for_probe && probe::entered == before) std::this_thread::yield();
    session.Cancel();
  });
  Status status = session.Run();
  other.join();
  return status;
}

void ExpectCancelled(const Status& status, const std::string& model) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled) << status.error().message;
  EXPECT_EQ(status.error().message, model + ": the run was cancelled");
}

TEST(Cancel, EndsALoopThatNeverEnds) {
  for (const bool steps : {true, false}) {
    const auto session = Started(Opened(Endless(steps)));
    for (int i = 0; i < 2; ++i) {
      ExpectCancelled(RunCancelled(*session, false), "endless.tflite");
      session->ResetState();
    }
  }
}

TEST(Cancel, EndsAKernelThatPolls) {
  const auto session = Started(Opened(Row({"test.twice", "probe.poll", "test.fail"})));
  ExpectCancelled(RunCancelled(*session, true), "row.tflite");
  EXPECT_FALSE(session->output(0));
}

TEST(Cancel, LeavesOutTheChunksThatAreLeft) {
  const auto session = Started(Opened(Row({"probe.chunks"})), {.threads = 2});
  if (session->threads() < 2) GTEST_SKIP() << "the process has one core";
  probe::chunks = 0;
  ExpectCancelled(RunCancelled(*session, true), "row.tflite");
  EXPECT_THAT(probe::chunks.load(), Lt(900));
}

TEST(Cancel, EndsAPartitionWhichTheDelegateKeeps) {
  const auto session = Started(Opened(Row({"probe.twice", "probe.twice"}), true));
  probe::polls = true;
  ExpectCancelled(RunCancelled(*session, true), "row.tflite");
  probe::polls = false;
  session->ResetState();
  ASSERT_TRUE(session->SetInput(0, Floats({1, 2, 3, 4})));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(Output(*session), ElementsAre(4, 8, 12, 16));
  EXPECT_TRUE(session->notices().empty());
  EXPECT_EQ(session->placements()[0].runner, "probe (partition 0)");
}

TEST(Cancel, BeforeARunEndsTheNextOneOnly) {
  const auto session = Started(Opened(Row({"test.twice"})));
  session->Cancel();
  session->Cancel();
  ExpectCancelled(session->Run(), "row.tflite");
  session->ResetState();
  ASSERT_TRUE(session->SetInput(0, Floats({1, 2, 3, 4})));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(Output(*session), ElementsAre(2, 4, 6, 8));
  session->Cancel();
  EXPECT_EQ(session->Prepare().error().code, Code::kCancelled);
  EXPECT_TRUE(session->Prepare());
}

// Each run ends early or computes everything; no Cancel is lost.
TEST(Cancel, AtAnyMomentLeavesAUsableSession) {
  const auto session = Started(Opened(Row(std::vector<std::string>(50, "test.twice"))));
  ASSERT_TRUE(session->SetInput(0, Floats({0, 0, 0, 0})));
  std::atomic<int> cancels = 0;
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) {
      const int before = cancels.load();
      session->Cancel();
      while (!done && cancels.load() == before) std::this_thread::yield();
    }
    done = true;
  });
  int cancelled = 0;
  while (!done) {
    const Status status = session->Run();
    if (status) continue;
    EXPECT_EQ(status.error().code, Code::kCancelled);
    ++cancelled;
    ++cancels;
    session->ResetState();
  }
  other.join();
  EXPECT_GE(cancelled, 199);
}

TEST(Cancel, OfAPluginOnlyIsAMistakeOfThatPlugin) {
  const auto session = Started(Opened(Row({"probe.pretend"})));
  const Status status = session->Run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_THAT(status.error().message,
              HasSubstr("plugin test.probe: it ended as cancelled, but the run was not cancelled"));
}

}  // namespace
}  // namespace fusebox::session_test
