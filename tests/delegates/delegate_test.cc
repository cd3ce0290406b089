// SPDX-License-Identifier: Apache-2.0
// Models with a toy delegate: it runs what it can, and whatever it gets wrong the model runs all the same.
#include <gmock/gmock.h>

#include <thread>

#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Who(const std::vector<Placement>& rows) {
  std::vector<std::string> who;
  for (const auto& row : rows) who.push_back(row.runner);
  return who;
}

TEST(Delegate, RunsWhatItClaimsAndTheKernelsRunTheRest) {
  const auto model = Open(Chain(), {ToyThat()});
  const auto rows = model->placements();
  EXPECT_THAT(Who(rows),
              ElementsAre("toy (partition 0)", "toy (partition 0)", "fusebox.cpu", "toy (partition 1)"));
  EXPECT_EQ(rows[2].node, "node 2 SUB (SUB)");
  EXPECT_EQ(rows[2].why, "toy: OP: only ADD and MUL are for toys");
  const int before = toy::counts.invoked;
  const auto session = SessionOf(model);
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_EQ(toy::counts.invoked - before, 2);
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST(Delegate, IsAppliedByDefaultAndTurnedOff) {
  const auto by_default = Model::FromModule(Chain(), {.registry = ToyRegistry()});
  EXPECT_EQ((*by_default)->placements()[0].runner, "toy (partition 0)");
  EXPECT_EQ(Open(Chain(), {})->placements()[0].runner, "fusebox.cpu");
}

TEST(Delegate, TakesOptionsOfTheProgramOverThoseOfTheList) {
  const auto model = Model::FromModule(Chain(), {.registry = ToyRegistry(),
                                                 .delegates = std::vector{ToyThat("create")},
                                                 .delegate_options = R"({"toy": {"lie": ""}, "lego": {}})"});
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->placements()[0].runner, "toy (partition 0)");
  EXPECT_THAT((*model)->notices(), ElementsAre("delegate lego has options, but is not used"));
}

TEST(Delegate, ThatNobodyHasIsAnError) {
  const auto model = Model::FromModule(
      Chain(), {.registry = ToyRegistry(), .delegates = std::vector{Config::Delegate{"tay"}}});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("did you mean \"toy\"?"));
}

// Every lie: the answer is that of the kernels, and somebody says why.
struct Lie {
  const char *name, *reason;
  bool in_model;  // known before a session is there
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }
class Lies : public testing::TestWithParam<Lie> {};

TEST_P(Lies, AreSurvivedWithAReason) {
  const Lie& lie = GetParam();
  {
    const auto model = Open(Chain(), {ToyThat(lie.name)});
    ASSERT_NE(model, nullptr);
    const auto session = SessionOf(model);
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
      EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 12));
    }
    std::string said;
    for (const std::string& notice : lie.in_model ? model->notices() : session->notices()) said += notice;
    for (const auto& row : lie.in_model ? model->placements() : session->placements()) said += row.why;
    EXPECT_THAT(said, HasSubstr(lie.reason));
  }
  EXPECT_EQ(toy::counts.delegates, 0);
  EXPECT_EQ(toy::counts.sessions, 0);
  EXPECT_EQ(toy::counts.partitions, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Delegate, Lies,
    testing::Values(
        Lie{"create", "delegate toy is not used: plugin test.toy: LIE: it creates nothing", true},
        Lie{"claim", "claim threw", true}, Lie{"stray", "1 nodes that function main does not have", true},
        Lie{"forget", "toy: neither accepted nor rejected", true}, Lie{"contradict", "toy: LIE: no", true},
        Lie{"twice", "toy: OP", true}, Lie{"everything", "cannot run SUB", false},
        Lie{"open", "declined at compile: plugin test.toy: out of memory", false},
        Lie{"compile", "toy (partition 0) declined at compile: plugin test.toy: LIE: it compiles nothing",
            false},
        Lie{"finish", "declined at finish: plugin test.toy: nothing to finish with", false},
        Lie{"prepare", "declined at prepare: plugin test.toy: EXCEPTION: prepare threw", false},
        Lie{"shape", "it computes output 0 as f32[2,7], the kernels as f32[2]", false},
        Lie{"needs", "infer requires the value of an input", false},
        Lie{"memory", "no scratch memory", false},
        Lie{"size", "session memory 'runs' has 16 bytes, but 8 were requested", false},
        Lie{"invoke", "declined at invoke: plugin test.toy: EXCEPTION", false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Delegate, DeclinedPlacementsNameTheKernels) {
  const auto model = Open(Chain(), {ToyThat("prepare")});
  EXPECT_EQ(model->placements()[0].runner, "toy (partition 0)");
  const auto session = SessionOf(model);
  Output(*session, {1, 2});
  EXPECT_THAT(Who(session->placements()), Not(Contains(HasSubstr("toy"))));
  EXPECT_THAT(session->Explain(), HasSubstr("kernels"));
}

TEST(Delegate, IsPreparedAgainWhenShapesComeBack) {
  auto module = Chain(-1);
  module->functions[0]->value(1).type = F32({1});
  module->functions[0]->value(1).data = Buffer::Of<float>(std::vector<float>{2});
  // With a constant of one element the toy declines to broadcast: it takes what has the input's shape only.
  Function& f = *module->functions[0];
  for (const auto& node : f.nodes) node->operands[1] = 0;
  const auto session = SessionOf(Open(std::move(module), {ToyThat()}));
  const int before = toy::counts.prepared;
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(45, 112));
  EXPECT_EQ(toy::counts.prepared - before, 2);
  EXPECT_THAT(Output(*session, {3}), ElementsAre(45));
  EXPECT_EQ(toy::counts.prepared - before, 4);
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(45, 112));
  EXPECT_EQ(toy::counts.prepared - before, 6);
  EXPECT_THAT(Output(*session, {4, 3}), ElementsAre(112, 45));
  EXPECT_EQ(toy::counts.prepared - before, 6);
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST(Delegate, FinishesOnceAllPartitionsOfASignatureAreCompiled) {
  const auto session = SessionOf(Open(Chain(), {ToyThat()}));
  const int finished = toy::counts.finished, compiled = toy::counts.compiled;
  Output(*session, {1, 2});
  Output(*session, {1, 2});
  EXPECT_EQ(toy::counts.compiled - compiled, 2);
  EXPECT_EQ(toy::counts.finished - finished, 1);
}

// Each with a session of its own, twenty times.
int RightAnswersOfFourThreads(const std::shared_ptr<const Model>& model) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto session = SessionOf(model);
      for (int i = 0; i < 20; ++i) right += Output(*session, {3, 4}) == std::vector<float>{9, 40};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return right;
}

TEST(Delegate, ServesSessionsOfSeveralThreads) {
  const auto model = Open(Chain(), {ToyThat()});
  EXPECT_EQ(RightAnswersOfFourThreads(model), 80);
}

// Sessions fall back at the same time: the kernels that nobody had initialized are initialized once.
TEST(Delegate, FallsBackInSeveralThreadsAtOnce) {
  const auto model = Open(Chain(), {ToyThat("invoke")});
  EXPECT_EQ(RightAnswersOfFourThreads(model), 80);
}

// Weights are packed by whoever runs them, and by nobody else.
TEST(Delegate, SparesTheKernelsTheirPackingUntilItDeclines) {
  const auto packed = [] {
    auto module = Chain();
    Node& node = *module->functions[0]->nodes[0];
    node.op = Op::kCustom;
    node.name = "test.packed_add";
    return module;
  };
  const int before = toy::counts.packed;
  EXPECT_THAT(Output(*SessionOf(Open(packed(), {ToyThat()})), {3, 4}), ElementsAre(9, 40));
  EXPECT_EQ(toy::counts.packed - before, 0);
  const auto model = Open(packed(), {ToyThat("compile")});
  EXPECT_EQ(toy::counts.packed - before, 0);
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Output(*SessionOf(model), {3, 4}), ElementsAre(9, 40));
  EXPECT_EQ(toy::counts.packed - before, 1) << "once for all sessions";
  Open(packed(), {});
  EXPECT_EQ(toy::counts.packed - before, 2);
}

TEST(Delegate, TakesPartInLoops) {
  auto module = std::make_unique<Module>();
  module->source = "loop.tflite";
  Function& main = module->Add("main");
  Function& cond = module->Add("cond");
  Function& body = module->Add("body");
  const Type i32{DType::kI32, Shape::Scalar()};
  for (Function* f : {&cond, &body}) {
    f->AddInput(i32, "i");
    f->AddInput(F32({2}), "x");
  }
  const ValueId limit = cond.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
  cond.outputs = {cond.AddNode(Op::kLess, {0, limit}, {{DType::kBool, Shape::Scalar()}}).results[0]};
  const ValueId one = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
  const ValueId next = body.AddNode(Op::kAdd, {0, one}, {i32}).results[0];
  body.outputs = {next, Make(body, Op::kMul, {Make(body, Op::kAdd, {1, 1}), 1})};
  const ValueId zero = main.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  const ValueId x = main.AddInput(F32({2}), "x");
  Attrs attrs;
  attrs.Set("cond_subgraph_index", FunctionRef{"cond"});
  attrs.Set("body_subgraph_index", FunctionRef{"body"});
  main.outputs = {main.AddNode(Op::kWhile, {zero, x}, {i32, F32({2})}, attrs).results[1]};
  const auto model = Open(std::move(module), {ToyThat()});
  const auto session = SessionOf(model);
  EXPECT_THAT(Output(*session, {1, 0.5}), ElementsAre(128, 0.5));
  EXPECT_THAT(Who(session->placements()), Contains("toy (partition 0)"));
}

// What only the delegate can run is an error only where it declines.
TEST(Delegate, MayRunWhatNoKernelDoes) {
  const auto only_toys = [] {
    auto module = Chain();
    Node& node = *module->functions[0]->nodes[0];
    node.op = Op::kCustom;
    node.name = "toy.add";
    return module;
  };
  EXPECT_THAT(Output(*SessionOf(Open(only_toys(), {ToyThat()})), {3, 4}), ElementsAre(9, 40));
  const auto session = SessionOf(Open(only_toys(), {ToyThat("compile")}));
  ASSERT_TRUE(session->SetInput(0, Tensor{F32({2}), Buffer::Of<float>(std::vector<float>{3, 4})}));
  const Status status = session->Run();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("function main: node 0 toy.add (ADD): no kernel for toy.add"));
}

// The kernel of test.packed_add declines where it is told to "refuse", and still knows the shape.
TEST(Delegate, LearnsShapesFromKernelsThatWouldNotRunTheNode) {
  const auto refused = [] {
    auto module = Chain(-1);
    Function& f = *module->functions[0];
    for (const auto& node : f.nodes) node->operands[1] = 0;
    f.nodes[0]->op = Op::kCustom;
    f.nodes[0]->name = "test.packed_add";
    f.nodes[0]->attrs.Set("refuse", true);
    return module;
  };
  const auto session = SessionOf(Open(refused(), {ToyThat()}));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(45, 112));
  EXPECT_THAT(Output(*session, {3}), ElementsAre(45));
  EXPECT_EQ(session->placements()[0].runner, "toy (partition 0)");
  const auto declined = SessionOf(Open(refused(), {ToyThat("prepare")}));
  ASSERT_TRUE(declined->SetInput(0, Tensor{F32({2}), Buffer::Of<float>(std::vector<float>{3, 4})}));
  const Status status = declined->Run();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("declined by test.toy: REFUSED: as told"));
  EXPECT_EQ(declined->placements()[0].runner, "nobody");
}

// What would be left to the kernels as not worth a partition is worth one where no kernel runs it.
TEST(Delegate, TakesAloneWhatNobodyElseRuns) {
  for (const bool refuse : {false, true}) {
    auto module = Chain();
    Function& f = *module->functions[0];
    f.outputs = {f.nodes[0]->results[0]};
    f.nodes.resize(1);
    f.nodes[0]->op = Op::kCustom;
    f.nodes[0]->name = "test.packed_add";
    f.nodes[0]->attrs.Set("refuse", refuse);
    Config::Delegate toy = ToyThat();
    toy.options.Set("join", "test.packed_add");
    const auto model = Open(std::move(module), {toy});
    EXPECT_EQ(model->placements()[0].runner, refuse ? "toy (partition 0)" : "test.toy");
    EXPECT_THAT(Output(*SessionOf(model), {3, 4}), ElementsAre(4, 6));
  }
}

TEST(Delegate, IsNotAskedForNothingAndComesBack) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1}), "x");
  f.outputs = {Make(f, Op::kAdd, {x, x}, -1)};
  const auto session = SessionOf(Open(std::move(module), {ToyThat()}));
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(6, 8));
  const int before = toy::counts.invoked;
  EXPECT_THAT(Output(*session, {}), IsEmpty());
  EXPECT_EQ(toy::counts.invoked - before, 0);
  EXPECT_THAT(Output(*session, {5}), ElementsAre(10));
  EXPECT_EQ(toy::counts.invoked - before, 1);
  EXPECT_THAT(session->notices(), IsEmpty());
}

TEST(Delegate, SharesMemoryBetweenThePartitionsOfASession) {
  const auto model = Open(Chain(), {ToyThat()});
  const auto one = SessionOf(model), two = SessionOf(model);
  Output(*one, {1, 2});
  EXPECT_EQ(toy::counts.session_runs, 2);
  Output(*two, {1, 2});
  EXPECT_EQ(toy::counts.session_runs, 2);
  Output(*one, {1, 2});
  EXPECT_EQ(toy::counts.session_runs, 4);
  one->ResetState();
  Output(*one, {1, 2});
  EXPECT_EQ(toy::counts.session_runs, 2);
}

// A file may declare what it likes; delegates lay out memory by it.
TEST(Delegate, IsToldTheShapesThatKernelsFind) {
  for (const bool inside : {false, true}) {
    SCOPED_TRACE(inside ? "within the partition" : "at its input");
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const ValueId x = f.AddInput(F32({2}), "x");
    const ValueId first = Make(f, inside ? Op::kAdd : Op::kSub, {x, x}, 7);
    f.value(first).name = "wide";
    f.outputs = {Make(f, Op::kMul, {first, first}, 7)};
    const auto session = SessionOf(Open(std::move(module), {ToyThat()}));
    EXPECT_THAT(Output(*session, {3, 4}), inside ? ElementsAre(36, 64) : ElementsAre(0, 0));
    EXPECT_THAT(session->notices(), IsEmpty());
    EXPECT_TRUE(session->placements().back().runner.starts_with("toy"))
        << session->placements().back().runner;
  }
}

}  // namespace
}  // namespace fusebox::delegates_test
