// SPDX-License-Identifier: Apache-2.0
// Branches and loop bodies that do not accept the current shapes: an error only if they run.
#include <gmock/gmock.h>

#include <deque>

#include "tests/host/run/graphs.h"

namespace fusebox::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Type kFlag{DType::kBool, Shape::Scalar()};

Tensor Flag(bool value) { return {kFlag, Buffer::Of<uint8_t>(std::vector<uint8_t>{value})}; }

Attrs Functions(const char* key, const std::string& name, const char* key2, const std::string& name2) {
  Attrs attrs;
  attrs.Set(key, FunctionRef{name});
  attrs.Set(key2, FunctionRef{name2});
  return attrs;
}

ValueId If(Function& f, ValueId flag, std::vector<ValueId> operands, const std::string& then,
           const std::string& otherwise, Type type = F32({-1})) {
  operands.insert(operands.begin(), flag);
  return f
      .AddNode(Op::kIf, operands, {std::move(type)},
               Functions("then_subgraph_index", then, "else_subgraph_index", otherwise))
      .results[0];
}

// f(x) = `op` of x, which "test.pair" accepts only for two elements.
void AddCalled(Module& module, const std::string& name, const char* op, Attrs attrs = {},
               Type type = F32({-1})) {
  Function& f = module.Add(name);
  f.outputs = {Custom(f, op, {f.AddInput(type)}, type, std::move(attrs))};
}

// main(flag, x) = 2 * (flag ? pair(x) : 2 * x)
std::unique_ptr<Module> Branches(Type type = F32({-1})) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId flag = f.AddInput(kFlag), x = f.AddInput(F32({-1}));
  f.outputs = {Custom(f, "test.twice", {If(f, flag, {x}, "pair", "twice", type)}, type)};
  AddCalled(*module, "pair", "test.pair", {}, type);
  AddCalled(*module, "twice", "test.twice", {}, type);
  return module;
}

Status PrepareMain(Machine& machine, const std::vector<Tensor>& inputs) {
  std::deque<TensorView> views;
  std::vector<const fbx_tensor*> operands;
  for (const Tensor& input : inputs)
    operands.push_back(views.emplace_back(input.type, input.data.data(), input.data.size(), 0u).abi());
  return machine.runner->Prepare(*machine.program->Find("main"), operands);
}

TEST(Untaken, ABranchIsCheckedWhenItRuns) {
  Machine machine(Branches());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(PrepareMain(machine, {Flag(false), Floats({1, 2, 3})}));
    EXPECT_THAT(FloatsOf(machine.Run({Flag(false), Floats({1, 2, 3})})[0]), ElementsAre(4, 8, 12));
    EXPECT_THAT(machine.Error({Flag(true), Floats({1, 2, 3})}), HasSubstr("not a pair"));
    EXPECT_THAT(FloatsOf(machine.Run({Flag(true), Floats({1, 2})})[0]), ElementsAre(2, 4));
    EXPECT_THAT(FloatsOf(machine.Run({Flag(false), Floats({1, 2})})[0]), ElementsAre(4, 8));
  }
}

TEST(Untaken, BothBranchesOfABranchThatDoesNotRun) {
  auto module = Branches();
  Function& outer = module->Add("outer");
  const ValueId flag = outer.AddInput(kFlag), x = outer.AddInput(F32({-1}));
  outer.outputs = {If(outer, flag, {x}, "pair", "pair")};
  Function& other = module->Add("other");
  other.AddInput(kFlag);
  other.outputs = {Custom(other, "test.twice", {other.AddInput(F32({-1}))}, F32({-1}))};
  Function& f = *module->Find("main");
  f.nodes.clear();
  f.outputs = {If(f, f.inputs[0], f.inputs, "outer", "other")};
  Machine machine(std::move(module));
  EXPECT_TRUE(PrepareMain(machine, {Flag(false), Floats({1, 2, 3})}));
  EXPECT_THAT(FloatsOf(machine.Run({Flag(false), Floats({1, 2, 3})})[0]), ElementsAre(2, 4, 6));
  EXPECT_THAT(machine.Error({Flag(true), Floats({1, 2, 3})}), HasSubstr("not a pair"));
}

// while (x.size() < 3) x = pair(x), in a branch too.
TEST(Untaken, ALoopsBodyIsCheckedWhenItRuns) {
  for (const bool branch : {false, true}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const ValueId flag = f.AddInput(kFlag), x = f.AddInput(F32({-1}));
    Function& g = branch ? module->Add("loop") : f;
    const ValueId from = branch ? g.AddInput(F32({-1})) : x;
    const ValueId looped = g.AddNode(Op::kWhile, {from}, {F32({-1})},
                                     Functions("cond_subgraph_index", "short", "body_subgraph_index", "pair"))
                               .results[0];
    g.outputs = {Custom(g, "test.twice", {looped}, F32({-1}))};
    if (branch) f.outputs = {If(f, flag, {x}, "loop", "pair")};
    Function& cond = module->Add("short");
    Attrs than;
    than.Set("than", 3);
    cond.outputs = {Custom(cond, "test.shorter", {cond.AddInput(F32({-1}))}, kFlag, than)};
    AddCalled(*module, "pair", "test.pair");
    Machine machine(std::move(module));
    EXPECT_TRUE(PrepareMain(machine, {Flag(true), Floats({1, 2, 3})}));
    EXPECT_THAT(FloatsOf(machine.Run({Flag(true), Floats({1, 2, 3})})[0]), ElementsAre(2, 4, 6));
    EXPECT_THAT(machine.Error({Flag(true), Floats({1})}), HasSubstr("not a pair"));
    EXPECT_THAT(FloatsOf(machine.Run({Flag(true), Floats({1, 2, 3})})[0]), ElementsAre(2, 4, 6));
  }
}

// The file's own shapes contradict the op: kernels may reject them when they are initialized.
TEST(Untaken, ABranchWhoseKernelsCannotBeInitialized) {
  Attrs fail;
  fail.Set("fail", 1);
  for (const char* failing : {"pair", "twice"}) {
    auto module = Branches(F32({3}));
    Function& f = *module->Find(failing);
    f.nodes.clear();
    f.outputs = {Custom(f, "test.made", f.inputs, F32({3}), fail)};
    Machine machine(std::move(module));
    const bool other = failing == std::string("twice");
    if (!other) {
      EXPECT_THAT(FloatsOf(machine.Run({Flag(other), Floats({1, 2, 3})})[0]), ElementsAre(4, 8, 12));
    }
    EXPECT_THAT(machine.Error({Flag(!other), Floats({1, 2, 3})}), HasSubstr("cannot be made"));
  }
}

TEST(Untaken, AFunctionThatAlwaysRunsIsInitializedOnOpening) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  Attrs call, fail;
  call.Set("subgraph", FunctionRef{"made"});
  fail.Set("fail", 1);
  f.outputs = f.AddNode(Op::kCall, {f.AddInput(F32({1}))}, {F32({1})}, call).results;
  AddCalled(*module, "made", "test.made", fail, F32({1}));
  const auto program = Program::Create(*module, TestRegistry());
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("cannot be made"));
}

// Each function's branches are the next one, twice: errors are found once, too.
TEST(Untaken, BranchesThatShareAFunctionWithAnError) {
  constexpr int kNested = 40;
  auto module = std::make_unique<Module>();
  for (int i = 0; i < kNested; ++i) {
    Function& f = module->Add(i == 0 ? "main" : "f" + std::to_string(i));
    const std::string next = "f" + std::to_string(i + 1);
    const ValueId yes = f.AddInput(kFlag), x = f.AddInput(F32({-1}));
    f.outputs = {If(f, yes, {yes, x}, next, next)};
  }
  Function& last = module->Add("f" + std::to_string(kNested));
  last.AddInput(kFlag);
  last.outputs = {Custom(last, "test.pair", {last.AddInput(F32({-1}))}, F32({-1}))};
  Machine machine(std::move(module));
  EXPECT_THAT(machine.Error({Flag(true), Floats({1, 2, 3})}), HasSubstr("not a pair"));
}

// Planning that fails has set types of the new shapes.
TEST(Untaken, ARunAfterARunThatFailed) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId twice = Custom(f, "test.twice", {f.AddInput(F32({-1}))}, F32({-1}));
  f.outputs = {Custom(f, "test.pair", {twice}, F32({-1}))};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[0]), ElementsAre(2, 4));
  EXPECT_THAT(machine.Error({Floats({1, 2, 3})}), HasSubstr("not a pair"));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[0]), ElementsAre(2, 4));
}

}  // namespace
}  // namespace fusebox::run
