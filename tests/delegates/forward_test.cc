// SPDX-License-Identifier: Apache-2.0
// fusebox.forward/1: delegates that let kernels run their partitions.
#include <gmock/gmock.h>

#include <thread>

#include "tests/delegates/counted_new.h"
#include "tests/delegates/forward/forward.h"
#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

using forward_test::seen;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ForwardTest : public ::testing::Test {
 protected:
  ForwardTest() { Clear(); }
  ~ForwardTest() override { Clear(); }
  static void Clear() {
    seen.nodes.clear();
    seen.statuses.clear();
    seen.partitions = seen.invokes = 0;
    seen.in_watch = nullptr;
  }
};

// Empty: kernels run the model.
std::shared_ptr<const Model> Opened(std::unique_ptr<Module> module,
                                    std::optional<std::string> mode = std::nullopt,
                                    const std::string& skip = {}) {
  static const fbx_entry* const kEntries[] = {&fusebox_forward_entry_v1};
  Config config;
  config.search_default_path = false;
  std::vector<Config::Delegate> delegates;
  if (mode) {
    delegates.push_back({"forward"});
    delegates[0].options.Set("mode", *mode);
    delegates[0].options.Set("skip", skip);
  }
  auto model = Model::FromModule(std::move(module),
                                 {.registry = *Registry::Create(config, kEntries), .delegates = delegates});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

// y = OP(x), of a custom op.
std::unique_ptr<Module> OneNode(const std::string& op, const std::string& body = {}) {
  auto module = std::make_unique<Module>();
  module->source = "one.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2}), "x");
  f.outputs = {Make(f, Op::kCustom, {x})};
  f.nodes[0]->name = op;
  f.nodes[0]->body = body;
  return module;
}

TEST_F(ForwardTest, RunsTheNodesOnKernelsAndReportsThem) {
  const auto session = SessionOf(Opened(Chain(), ""));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(seen.nodes, ElementsAre("0 ADD", "1 MUL", "2 SUB", "3 MUL"));
  EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 12));
  EXPECT_EQ(seen.nodes.size(), 8u);
  EXPECT_EQ(seen.partitions, 1);
  EXPECT_EQ(session->placements()[2].runner, "forward (partition 0)");
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST_F(ForwardTest, RunsSeveralPartitions) {
  const auto session = SessionOf(Opened(Chain(), "", "SUB"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(seen.nodes, ElementsAre("0 ADD", "1 MUL", "0 MUL"));
  EXPECT_EQ(session->placements()[2].runner, "fusebox.cpu");
}

TEST_F(ForwardTest, PlansAtTheFirstRunWithoutPrepare) {
  const auto session = SessionOf(Opened(Chain(), "late"));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_EQ(seen.invokes, 2);
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST_F(ForwardTest, RunsIntoTensorsOfTheDelegate) {
  const auto session = SessionOf(Opened(Chain(), "twice"));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST_F(ForwardTest, FollowsShapes) {
  const auto chain = [] {
    auto module = Chain(-1);
    Function& f = *module->functions[0];
    for (const auto& node : f.nodes) node->operands[1] = 0;
    return module;
  };
  const auto session = SessionOf(Opened(chain(), ""));
  const auto kernels = SessionOf(Opened(chain()));
  for (size_t n : {2, 1, 0, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11, 2}) {
    const std::vector<float> x(n, 3);
    EXPECT_EQ(Output(*session, x), Output(*kernels, x)) << n;
  }
  EXPECT_EQ(seen.invokes, 13) << "kernels run the empty input";
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST_F(ForwardTest, RunsResizedInputs) {
  auto module = Chain();
  for (const auto& node : module->functions[0]->nodes) node->operands[1] = 0;
  const auto session = SessionOf(Opened(std::move(module), ""));
  ASSERT_TRUE(session->Resize(0, Shape({3})));
  EXPECT_THAT(Output(*session, {3, 4, 1}), ElementsAre(45, 112, 1));
  EXPECT_EQ(seen.invokes, 1);
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST_F(ForwardTest, KeepsStatePerSessionUntilReset) {
  const auto model = Opened(OneNode("test.counter"), "");
  const auto one = SessionOf(model), other = SessionOf(model);
  EXPECT_THAT(Output(*one, {5, 5}), ElementsAre(5, 5));
  EXPECT_THAT(Output(*one, {5, 5}), ElementsAre(6, 6));
  EXPECT_THAT(Output(*other, {5, 5}), ElementsAre(5, 5));
  one->ResetState();
  EXPECT_THAT(Output(*one, {5, 5}), ElementsAre(5, 5));
  EXPECT_THAT(Output(*other, {5, 5}), ElementsAre(6, 6));
  EXPECT_EQ(seen.invokes, 5);
}

TEST_F(ForwardTest, KernelsReportTheirErrors) {
  const auto session = SessionOf(Opened(OneNode("test.picky"), ""));
  EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 2));
  ASSERT_TRUE(session->SetInput(0, Tensor{F32({2}), Buffer::Of<float>(std::vector<float>{-1, 2})}));
  const Status status = session->Run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalid);
  EXPECT_THAT(status.error().message,
              HasSubstr("node 0 test.picky (CUSTOM): plugin test.forward: a negative value"));
  ASSERT_EQ(session->notices().size(), 1u);
  EXPECT_THAT(session->notices()[0], HasSubstr("declined at invoke"));
  EXPECT_THAT(session->notices()[0], HasSubstr("a negative value"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(3, 4)) << "on kernels";
}

TEST_F(ForwardTest, LeavesThePartitionToKernelsIfTheDelegateFails) {
  const auto session = SessionOf(Opened(Chain(), "dropped"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_EQ(seen.invokes, 1);
  EXPECT_THAT(session->notices()[0], HasSubstr("the device is gone"));
}

TEST_F(ForwardTest, RejectsOtherTensors) {
  const auto session = SessionOf(Opened(Chain(), "misfit"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(seen.statuses, ElementsAre(FBX_INVALID, FBX_INVALID, FBX_INVALID, FBX_INVALID));
}

TEST_F(ForwardTest, IsForPrepareAndInvokeOfAPartition) {
  const auto session = SessionOf(Opened(Chain(), "astray"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(seen.statuses, ElementsAre(FBX_NOT_APPLICABLE, FBX_NOT_APPLICABLE));
}

TEST_F(ForwardTest, DoesNotRunInsideOfItself) {
  const auto session = SessionOf(Opened(Chain(), "again", "SUB"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(seen.statuses, ElementsAre(FBX_NOT_APPLICABLE, FBX_NOT_APPLICABLE, FBX_NOT_APPLICABLE));
}

TEST_F(ForwardTest, EndsEarlyIfTheRunIsCancelled) {
  const auto session = SessionOf(Opened(Chain(), ""));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  seen.nodes.clear();
  seen.in_watch = [&] { session->Cancel(); };
  const Status status = session->Run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_THAT(seen.nodes, ElementsAre("0 ADD"));
  seen.in_watch = nullptr;
  EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 12));
  EXPECT_EQ(seen.nodes.size(), 5u) << "the delegate keeps the partition";
}

// The body of an op without kernel is a function that the delegate also has partitions of. Kernels run these
// inside of another partition, and the delegate still runs them elsewhere.
TEST_F(ForwardTest, OffersNoNodeAgain) {
  const auto with_body = [] {
    auto module = std::make_unique<Module>();
    module->source = "bodies.tflite";
    Function& main = module->Add("main");
    Function& f = module->Add("f");
    Function& second = module->Add("second");
    const ValueId in = f.AddInput(F32({2}), "x");
    f.outputs = {Make(f, Op::kAdd, {in, in})};
    const ValueId x = main.AddInput(F32({2}), "x");
    main.outputs = {Make(main, Op::kCustom, {x})};
    main.nodes[0]->name = "test.skipped";
    main.nodes[0]->body = "f";
    const ValueId y = second.AddInput(F32({2}), "x");
    second.outputs = {Make(second, Op::kMul, {Make(second, Op::kCustom, {y}), y})};
    second.nodes[0]->name = "test.unknown";
    second.nodes[0]->body = "f";
    module->signatures.push_back({"second", "second", {"x"}, {"y"}});
    module->signatures.push_back({"main", "main", {"x"}, {"y"}});
    return module;
  };
  const auto session = SessionOf(Opened(with_body(), "", "test.skipped"));
  ASSERT_TRUE(session->SelectSignature("second"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(18, 32));
  EXPECT_THAT(seen.nodes, ElementsAre("0 test.unknown", "1 MUL"));
  seen.nodes.clear();
  ASSERT_TRUE(session->SelectSignature("main"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(6, 8));
  EXPECT_THAT(seen.nodes, ElementsAre("0 ADD"));
  EXPECT_EQ(seen.invokes, 2);
}

TEST_F(ForwardTest, AllocatesNothingInTheSteadyState) {
  const auto session = SessionOf(Opened(Chain(), "quiet"));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(session->Run());
  const int before = allocations;
  EXPECT_TRUE(session->Run());
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(seen.invokes, 4);
}

TEST_F(ForwardTest, ServesSessionsOfSeveralThreads) {
  const auto model = Opened(Chain(), "");
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto session = SessionOf(model);
      for (int i = 0; i < 20; ++i) right += Output(*session, {3, 4}) == std::vector<float>{9, 40};
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
  EXPECT_EQ(seen.nodes.size(), 320u);
}

TEST_F(ForwardTest, TimesItsNodes) {
  const auto model = Opened(Chain(), "");
  const auto session = *Session::Create(model, {.profile = true});
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  std::vector<std::string> ops;
  for (const NodeTime& row : session->times()) ops.push_back(row.op + " " + row.runner);
  EXPECT_THAT(ops, ElementsAre("PARTITION forward (partition 0)", "ADD fusebox.cpu", "MUL fusebox.cpu",
                               "SUB fusebox.cpu", "MUL fusebox.cpu"));
}

}  // namespace
}  // namespace fusebox::delegates_test
