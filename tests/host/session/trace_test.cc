// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "host/base/trace.h"
#include "tests/host/session/fixture.h"
#include "tests/testing/trace_events.h"

namespace fusebox::session_test {
namespace {

using ::testing::IsEmpty;
using testing_trace::Contains;
using testing_trace::json;
using testing_trace::NameOf;
using testing_trace::Spans;

template <class Work>
json TraceOf(const Work& work) {
  Trace trace;
  {
    const Trace::Recording recording(trace);
    work();
  }
  const std::string path = ::testing::TempDir() + "session_trace.json";
  auto file = AtomicFile::Create(path);
  if (!file || !trace.Write(*file) || !file->Commit()) ADD_FAILURE() << path;
  const std::string text = ReadTextFile(path).value_or("");
  EXPECT_EQ(testing_trace::WhyNotATrace(text), "") << text;
  return json::parse(text, nullptr, false);
}

TEST(Trace, HasStagesRunsAndNodes) {
  const json trace = TraceOf([] {
    auto module = Row({"test.twice", "probe.seen"});
    module->functions[0]->nodes[1]->location.name = "layer/seen";
    const auto session = Started(Opened(std::move(module)));
    ASSERT_TRUE(session->Prepare());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run());
  });
  EXPECT_EQ(Spans(trace, "plan").size(), 1u);
  EXPECT_EQ(Spans(trace, "compile").size(), 1u);
  const auto runs = Spans(trace, "invoke"), nodes = Spans(trace, "", "node");
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(nodes.size(), 6u);
  for (size_t i = 0; i < nodes.size(); ++i) EXPECT_TRUE(Contains(runs[i / 2], nodes[i])) << i;
  EXPECT_EQ(nodes[0]["name"], "test.twice");
  EXPECT_EQ(nodes[5]["name"], "probe.seen");
  EXPECT_EQ(nodes[5]["args"],
            json::parse(R"({"name": "layer/seen", "function": "main", "node": 1, "outputs": ["v2"],
                            "types": ["f32[4]"], "run by": "test.probe"})"));
}

bool WorkerTookPart(const Session& session) {
  return std::ranges::any_of(session.times(), [](const NodeTime& time) {
    return std::ranges::any_of(time.spans,
                               [](const SpanTime& span) { return span.name == "chunk" && span.worker > 0; });
  });
}

// A loop does not wait for a worker: on a busy machine it takes part in a later one.
TEST(Trace, HasWorkersWithNames) {
  std::vector<int> threads;
  size_t runs = 0;
  const json trace = TraceOf([&] {
    const auto session = Started(Opened(Row({"probe.spans"})), {.threads = 2});
    threads.push_back(session->threads());
    for (; runs < 5000 && session->threads() > 1 && !WorkerTookPart(*session); ++runs) {
      ASSERT_TRUE(session->Run());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  if (threads.at(0) < 2) GTEST_SKIP() << "one core";
  const auto nodes = Spans(trace, "probe.spans", "node");
  std::set<std::string> names;
  for (const json& node : nodes) names.insert(NameOf(trace, testing_trace::ThreadOf(node)));
  EXPECT_THAT(names, testing::ElementsAre("main", "worker 1"));
  EXPECT_EQ(Spans(trace, "chunk", "span").size(), runs * 64);
  for (const json& chunk : Spans(trace, "chunk")) {
    const bool inside = std::ranges::any_of(nodes, [&](const json& node) { return Contains(node, chunk); });
    EXPECT_TRUE(inside) << chunk;
  }
}

TEST(Trace, HasWhatADelegateDoes) {
  const json trace = TraceOf([] {
    const auto session = Started(Opened(Row({"probe.twice", "probe.twice"}), true));
    ASSERT_TRUE(session->Run());
  });
  const auto node = Spans(trace, "PARTITION", "node"), inner = Spans(trace, "scale", "span");
  ASSERT_EQ(node.size(), 1u);
  EXPECT_EQ(node[0]["args"]["nodes"], 2);
  EXPECT_EQ(node[0]["args"]["run by"], "probe (partition 0)");
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_TRUE(Contains(node[0], inner[0]));
  EXPECT_EQ(Spans(trace, "compile partition").at(0)["args"]["partition"], "probe (partition 0)");
  EXPECT_EQ(Spans(trace, "claim").size(), 1u);
  EXPECT_EQ(Spans(trace, "prepare partition").size(), 1u);
}

TEST(Trace, IsOffForSessionsThatWereCreatedBefore) {
  const auto session = Started(Opened(Row({"test.twice"})));
  const json trace = TraceOf([&] {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run());
  });
  EXPECT_THAT(Spans(trace, "invoke"), IsEmpty());
  EXPECT_THAT(Spans(trace, "", "node"), IsEmpty());
  EXPECT_THAT(session->times(), IsEmpty());
}

}  // namespace
}  // namespace fusebox::session_test
