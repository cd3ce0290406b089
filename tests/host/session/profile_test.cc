// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using ::testing::IsEmpty;

TEST(Profile, CountsRunsAndTimesOfNodes) {
  auto module = Row({"test.twice", "probe.spans"});
  module->functions[0]->nodes[1]->location.name = "layer/spans";
  const auto session = Started(Opened(std::move(module)), {.profile = true});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run());
  const auto times = session->times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].function, "main");
  EXPECT_EQ(times[0].node, 0u);
  EXPECT_EQ(times[0].op, "test.twice");
  EXPECT_EQ(times[0].runner, "test.plugin");
  EXPECT_EQ(times[0].runs, 3u);
  EXPECT_GT(times[0].total_ns, 0u);
  EXPECT_THAT(times[0].spans, IsEmpty());
  EXPECT_EQ(times[1].node, 1u);
  EXPECT_EQ(times[1].name, "layer/spans");
}

TEST(Profile, AddsUpSpansByNameAndWorker) {
  const auto session = Started(Opened(Row({"probe.spans"})), {.threads = 2, .profile = true});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->Run());
  const NodeTime time = session->times().at(0);
  std::map<std::string, uint64_t> counts;
  for (const SpanTime& span : time.spans) {
    counts[span.name] += span.count;
    EXPECT_LE(span.total_ns, time.total_ns);
    if (span.name != "copy" || span.worker == 1) continue;
    EXPECT_EQ(span.count, 2u);
    EXPECT_EQ(span.bytes, 16u);
    EXPECT_EQ(span.flops, 4u);
  }
  EXPECT_EQ(counts["copy"], 4u) << "of two workers";
  EXPECT_EQ(counts["chunk"], session->threads() > 1 ? 128u : 2u);
}

TEST(Profile, ATableIsNotReadAsAWhole) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId table = f.AddInput(run::F32({1000, 4}), "table");
  const ValueId index = f.AddInput({DType::kI32, {2}}, "index");
  f.outputs = f.AddNode(Op::kGather, {table, index}, {run::F32({2, 4})}).results;
  const auto session = Started(Opened(std::move(module)), {.profile = true});
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->times().at(0).bytes, 32u + 8u + 32u);
}

TEST(Profile, NamesThePartitionAndItsDelegate) {
  const auto session =
      Started(Opened(Row({"test.twice", "probe.twice", "probe.twice"}), true), {.profile = true});
  ASSERT_TRUE(session->Run());
  const auto times = session->times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[1].op, "PARTITION");
  EXPECT_EQ(times[1].runner, "probe (partition 0)");
  EXPECT_EQ(times[1].node, 1u);
  EXPECT_EQ(times[1].nodes, 2u);
  ASSERT_EQ(times[1].spans.size(), 1u);
  EXPECT_EQ(times[1].spans[0].name, "scale");
}

TEST(Profile, HasTheLoopAndItsBody) {
  auto module = Endless();
  Attrs than;
  than.Set("than", 0);
  module->Find("condition")->nodes[0]->attrs = than;  // no iteration
  const auto session = Started(Opened(std::move(module)), {.profile = true});
  ASSERT_TRUE(session->Run());
  const auto times = session->times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].op, "WHILE");
  EXPECT_EQ(times[0].runner, "host");
  EXPECT_EQ(times[1].function, "condition");
  EXPECT_GE(times[0].total_ns, times[1].total_ns);
}

TEST(Profile, IsAbsentUnlessAsked) {
  const auto session = Started(Opened(Row({"probe.spans"})));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(session->times(), IsEmpty());
}

}  // namespace
}  // namespace fusebox::session_test
