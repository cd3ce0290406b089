// SPDX-License-Identifier: Apache-2.0
// Calls, branches, loops, variables and the state of a runner.
#include <gmock/gmock.h>

#include <deque>

#include "host/graph/npy.h"
#include "tests/host/run/graphs.h"

namespace fusebox::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attrs Ref(const char* key, const char* function, const char* key2 = nullptr,
          const char* function2 = nullptr) {
  Attrs attrs;
  attrs.Set(key, FunctionRef{function});
  if (key2 != nullptr) attrs.Set(key2, FunctionRef{function2});
  return attrs;
}

void AddUnary(Module& module, const char* name, const char* op, Type type) {
  Function& f = module.Add(name);
  f.outputs = {Custom(f, op, {f.AddInput(type)}, type)};
}

TEST(Control, CallsAFunctionFromTwoPlaces) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  AddUnary(*module, "twice", "test.twice", F32({-1}));
  ValueId x = f.AddInput(F32({2}));
  for (int i = 0; i < 2; ++i) x = f.AddNode(Op::kCall, {x}, {F32({2})}, Ref("subgraph", "twice")).results[0];
  f.outputs = {x};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[0]), ElementsAre(4, 8));
}

TEST(Control, TakesTheBranchThatTheConditionSays) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  AddUnary(*module, "twice", "test.twice", F32({-1}));
  AddUnary(*module, "longer", "test.append", F32({-1}));
  const ValueId condition = f.AddInput({DType::kBool, Shape(std::vector<int64_t>())});
  const ValueId x = f.AddInput(F32({2}));
  const ValueId y = f.AddNode(Op::kIf, {condition, x}, {F32({-1})},
                              Ref("then_subgraph_index", "twice", "else_subgraph_index", "longer"))
                        .results[0];
  f.outputs = {Custom(f, "test.twice", {y}, F32({-1}))};
  Machine machine(std::move(module));
  const auto flag = [](bool value) {
    return Tensor{{DType::kBool, Shape(std::vector<int64_t>())},
                  Buffer::Of<uint8_t>(std::vector<uint8_t>{value})};
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(FloatsOf(machine.Run({flag(true), Floats({1, 2})})[0]), ElementsAre(4, 8));
    EXPECT_THAT(FloatsOf(machine.Run({flag(false), Floats({1, 2})})[0]), ElementsAre(2, 4, 6));
  }
}

// while (x.size() < 40) { x = append(x); y = 2y; w stays }
std::unique_ptr<Module> GrowingLoop() {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const std::vector<Type> types = {F32({-1}), F32({1}), F32({2})};
  Function& condition = module->Add("condition");
  for (const Type& type : types) condition.AddInput(type);
  Attrs than;
  than.Set("than", 40);
  condition.outputs = {Custom(condition, "test.shorter", {condition.inputs[0]},
                              {DType::kBool, Shape(std::vector<int64_t>())}, than)};
  Function& body = module->Add("body");
  for (const Type& type : types) body.AddInput(type);
  body.outputs = {Custom(body, "test.append", {body.inputs[0]}, types[0]),
                  Custom(body, "test.twice", {body.inputs[1]}, types[1]), body.inputs[2]};
  std::vector<ValueId> operands;
  for (const Type& type : types) operands.push_back(f.AddInput(type));
  f.outputs = f.AddNode(Op::kWhile, operands, types,
                        Ref("cond_subgraph_index", "condition", "body_subgraph_index", "body"))
                  .results;
  return module;
}

// Each function's branches are the next one, twice: asked or prepared once per way there, this would take for
// ever.
TEST(Control, BranchesThatShareFunctions) {
  constexpr int kNested = 40;
  auto module = std::make_unique<Module>();
  const Type flag{DType::kBool, Shape::Scalar()};
  for (int i = 0; i < kNested; ++i) {
    Function& f = module->Add(i == 0 ? "main" : "f" + std::to_string(i));
    const std::string next = "f" + std::to_string(i + 1);
    const ValueId yes = f.AddInput(flag), x = f.AddInput(F32({-1}));
    f.outputs = f.AddNode(Op::kIf, {yes, yes, x}, {F32({-1})},
                          Ref("then_subgraph_index", next.c_str(), "else_subgraph_index", next.c_str()))
                    .results;
  }
  Function& last = module->Add("f" + std::to_string(kNested));
  last.AddInput(flag);
  last.outputs = {Custom(last, "test.twice", {last.AddInput(F32({-1}))}, F32({-1}))};
  Machine machine(std::move(module));
  const std::vector<Tensor> inputs = {{flag, Buffer::Of<uint8_t>(std::vector<uint8_t>{1})}, Floats({1, 2})};
  std::deque<TensorView> views;
  std::vector<const fbx_tensor*> operands;
  for (const Tensor& input : inputs)
    operands.push_back(views.emplace_back(input.type, input.data.data(), input.data.size(), 0u).abi());
  EXPECT_TRUE(machine.runner->Prepare(*machine.program->Find("main"), operands));
  EXPECT_THAT(FloatsOf(machine.Run(inputs)[0]), ElementsAre(2, 4));
}

TEST(Control, LoopsWhileAShapeGrows) {
  Machine machine(GrowingLoop());
  for (int i = 0; i < 2; ++i) {
    const auto outputs = machine.Run({Floats(std::vector<float>(30, 0.0f)), Floats({1}), Floats({5, 6})});
    EXPECT_EQ(FloatsOf(outputs[0]).size(), 40u);
    EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(1024));
    EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(5, 6));
  }
}

TEST(Control, ALoopThatDoesNotRunGivesItsOperandsBack) {
  Machine machine(GrowingLoop());
  const auto outputs = machine.Run({Floats(std::vector<float>(40, 1.0f)), Floats({3}), Floats({5, 6})});
  EXPECT_EQ(FloatsOf(outputs[0]).size(), 40u);
  EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(3));
}

TEST(Control, SwappedLoopValuesDoNotOverwriteEachOther) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const std::vector<Type> types = {F32({-1}), F32({1}), F32({1})};
  Function& condition = module->Add("condition");
  for (const Type& type : types) condition.AddInput(type);
  Attrs than;
  than.Set("than", 3);
  condition.outputs = {Custom(condition, "test.shorter", {condition.inputs[0]},
                              {DType::kBool, Shape(std::vector<int64_t>())}, than)};
  Function& body = module->Add("body");
  for (const Type& type : types) body.AddInput(type);
  body.outputs = {Custom(body, "test.append", {body.inputs[0]}, types[0]), body.inputs[2], body.inputs[1]};
  std::vector<ValueId> operands;
  for (const Type& type : types) operands.push_back(f.AddInput(type));
  f.outputs = f.AddNode(Op::kWhile, operands, types,
                        Ref("cond_subgraph_index", "condition", "body_subgraph_index", "body"))
                  .results;
  Machine machine(std::move(module));
  const auto outputs = machine.Run({Floats({}), Floats({1}), Floats({2})});
  EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(2));
  EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(1));
}

ValueId Handle(Function& f, const char* name) {
  Attrs attrs;
  attrs.Set("shared_name", name);
  return f.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape(std::vector<int64_t>())}}, attrs).results[0];
}

// "main" counts up a variable that "start" has set to 10 once; "peek" reads it.
std::unique_ptr<Module> Counter() {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.AddNode(Op::kCallOnce, {}, {}, Ref("init_subgraph_index", "start"));
  const ValueId handle = Handle(f, "counter");
  const ValueId old = f.AddNode(Op::kReadVariable, {handle}, {F32({1})}).results[0];
  const ValueId next = Custom(f, "test.inplace", {old}, F32({1}));
  f.AddNode(Op::kAssignVariable, {handle, next}, {});
  f.outputs = {next};
  Function& start = module->Add("start");
  start.AddNode(Op::kAssignVariable,
                {Handle(start, "counter"), start.AddConst<float>(DType::kF32, {1}, {10})}, {});
  Function& peek = module->Add("peek");
  peek.outputs = {peek.AddNode(Op::kReadVariable, {Handle(peek, "counter")}, {F32({1})}).results[0]};
  module->signatures = {{"count", "main", {}, {"n"}}, {"peek", "peek", {}, {"n"}}};
  return module;
}

TEST(State, VariablesAreSharedByFunctionsAndInitializedOnce) {
  Machine machine(Counter());
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(11));
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(12));
  EXPECT_THAT(FloatsOf(machine.Run({}, "peek")[0]), ElementsAre(12));
  machine.runner->Reset();
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(11));
}

// if (up) n = n + 1, in place, else n = 100; and main reads n before and after.
TEST(State, BranchesWriteTheVariableThatTheCallerReads) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type flag{DType::kBool, Shape::Scalar()};
  const ValueId up = f.AddInput(flag), handle = Handle(f, "n");
  const auto read = [&] { return f.AddNode(Op::kReadVariable, {handle}, {F32({1})}).results[0]; };
  const ValueId before = read();
  const Type resource{DType::kResource, Shape::Scalar()};
  const ValueId done = f.AddNode(Op::kIf, {up, handle}, {F32({1})},
                                 Ref("then_subgraph_index", "count", "else_subgraph_index", "jump"))
                           .results[0];
  f.outputs = {before, done, read()};
  Function& count = module->Add("count");
  const ValueId counted = count.AddInput(resource);
  const ValueId old = count.AddNode(Op::kReadVariable, {counted}, {F32({1})}).results[0];
  const ValueId next = Custom(count, "test.inplace", {old}, F32({1}));
  count.AddNode(Op::kAssignVariable, {counted, next}, {});
  count.outputs = {next};
  Function& jump = module->Add("jump");
  const ValueId jumped = jump.AddInput(resource);
  const ValueId far = jump.AddConst<float>(DType::kF32, {1}, {100});
  jump.AddNode(Op::kAssignVariable, {jumped, far}, {});
  jump.outputs = {far};
  module->variables.push_back(
      {"n", "", F32({1}), Buffer::Of<float>(std::vector<float>{5}), Variable::Mutability::kMutable, ""});
  Machine machine(std::move(module));
  const auto run = [&](bool condition) {
    const auto outputs = machine.Run({{flag, Buffer::Of<uint8_t>(std::vector<uint8_t>{condition})}});
    std::vector<float> all;
    for (const Tensor& output : outputs) all.push_back(FloatsOf(output)[0]);
    return all;
  };
  EXPECT_THAT(run(true), ElementsAre(5, 6, 6));
  EXPECT_THAT(run(false), ElementsAre(6, 100, 100));
  EXPECT_THAT(run(true), ElementsAre(100, 101, 101));
  machine.runner->Reset();
  EXPECT_THAT(run(true), ElementsAre(5, 6, 6));
}

// Some files leave out the rank of handles, where others state it.
TEST(State, HandlesOfUnknownRankFindTheirVariable) {
  auto module = Counter();
  for (const auto& function : module->functions) {
    for (ValueId id = 0; id < function->value_count(); ++id)
      if (function->value(id).type.dtype == DType::kResource) function->value(id).type.shape = Shape();
  }
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(11));
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(12));
}

TEST(State, TheModulesInitialValueIsThereBeforeTheFirstRun) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = {f.AddNode(Op::kReadVariable, {Handle(f, "v")}, {F32({2})}).results[0]};
  module->variables.push_back(
      {"v", "", F32({2}), Buffer::Of<float>(std::vector<float>{3, 4}), Variable::Mutability::kMutable, ""});
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({})[0]), ElementsAre(3, 4));
}

TEST(State, ReadingAVariableThatNobodyAssignedIsAnError) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = {f.AddNode(Op::kReadVariable, {Handle(f, "v")}, {F32({2})}).results[0]};
  Machine machine(std::move(module));
  EXPECT_THAT(machine.Error({}), HasSubstr("variable v is read before"));
}

// One op with state; `state` makes its operand in `f`. Outputs: result, final state, and the operand when it
// may be read.
template <class F>
std::unique_ptr<Module> Stateful(F state, bool read_operand) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2}));
  const ValueId operand = state(f, x);
  const ValueId unused = f.AddConst<float>(DType::kF32, {1}, {0});
  const Node& node =
      f.AddNode(Op::kUnidirectionalSequenceRnn, {x, unused, unused, unused, operand}, {F32({2}), F32({2})});
  f.outputs = node.results;
  if (read_operand) f.outputs.push_back(operand);
  return module;
}

TEST(State, AVariableTensorIsKeptBetweenRunsUntilReset) {
  Machine machine(Stateful(
      [](Function& f, ValueId) {
        const ValueId id = f.AddValue(F32({2}));
        f.value(id).is_variable = true;
        return id;
      },
      false));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[0]), ElementsAre(1, 2));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[1]), ElementsAre(2, 4));
  machine.runner->Reset();
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[1]), ElementsAre(1, 2));
}

// A layer that is called twice: the second call goes on from the first, and the next run from the second.
TEST(State, AVariableTensorMayBeKeptByTwoOps) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2})), state = f.AddValue(F32({2}));
  f.value(state).is_variable = true;
  const ValueId unused = f.AddConst<float>(DType::kF32, {1}, {0});
  const auto rnn = [&](ValueId from) {
    return f.AddNode(Op::kUnidirectionalSequenceRnn, {x, unused, unused, unused, from}, {F32({2}), F32({2})})
        .results;
  };
  const auto first = rnn(state), second = rnn(first[1]);
  f.outputs = {first[0], second[0]};
  Machine machine(std::move(module));
  for (const float done : {0.0F, 2.0F, 4.0F}) {
    const auto outputs = machine.Run({Floats({1, 2})});
    EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(done + 1, 2 * done + 2));
    EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(done + 2, 2 * done + 4));
  }
}

TEST(State, AComputedStateStartsAnewEveryRun) {
  for (const bool read : {false, true}) {
    Machine machine(
        Stateful([](Function& f, ValueId x) { return Custom(f, "test.twice", {x}, F32({2})); }, read));
    for (int i = 0; i < 2; ++i) {
      const auto outputs = machine.Run({Floats({1, 2})});
      EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(3, 6));
      EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(3, 6));
      if (read) {
        EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(2, 4));
      }
    }
  }
}

TEST(State, AConstantStateIsCopiedEveryRun) {
  Machine machine(
      Stateful([](Function& f, ValueId) { return f.AddConst<float>(DType::kF32, {2}, {10, 20}); }, true));
  for (int i = 0; i < 2; ++i) {
    const auto outputs = machine.Run({Floats({1, 2})});
    EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(11, 22));
    EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(10, 20));
  }
}

TEST(State, AnInputStateIsLeftAlone) {
  Machine machine(Stateful([](Function&, ValueId x) { return x; }, true));
  const auto outputs = machine.Run({Floats({1, 2})});
  EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(2, 4));
  EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(1, 2));
}

TEST(State, AHashTableIsImportedOnceAndLookedUp) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  Attrs attrs;
  attrs.Set("table_id", 1);
  attrs.Set("key_dtype", DType::kI64);
  attrs.Set("value_dtype", DType::kString);
  const ValueId table = f.AddNode(Op::kHashtable, {}, {{DType::kResource, {1}}}, attrs).results[0];
  const ValueId keys = f.AddConst<int64_t>(DType::kI64, {2}, {7, 8});
  const ValueId values = f.AddConst({DType::kString, {2}}, PackStrings({"seven", "eight"}));
  f.AddNode(Op::kHashtableImport, {table, keys, values}, {});
  const ValueId otherwise = f.AddConst({DType::kString, {1}}, PackStrings({"?"}));
  const ValueId x = f.AddInput({DType::kI64, {-1}});
  f.outputs = {f.AddNode(Op::kHashtableFind, {table, x, otherwise}, {{DType::kString, {-1}}}).results[0],
               f.AddNode(Op::kHashtableSize, {table}, {{DType::kI64, {1}}}).results[0]};
  Machine machine(std::move(module));
  const Tensor asked{{DType::kI64, {3}}, Buffer::Of<int64_t>(std::vector<int64_t>{8, 9, 7})};
  for (int i = 0; i < 2; ++i) {
    const auto outputs = machine.Run({asked});
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_THAT(*UnpackStrings(outputs[0].data), ElementsAre("eight", "?", "seven"));
    EXPECT_THAT(outputs[1].data.As<int64_t>(), ElementsAre(2));
  }
}

TEST(Threads, NestedLoopsComputeTheSameOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 4}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    f.outputs = {Custom(f, "test.parallel", {f.AddInput(F32({-1}))}, F32({-1}))};
    Machine machine(std::move(module), threads);
    for (const size_t n : {size_t{0}, size_t{5}, size_t{1000}}) {
      EXPECT_EQ(FloatsOf(machine.Run({Floats(std::vector<float>(n, 1.0f))})[0]), std::vector<float>(n, 2.0f));
    }
  }
}

}  // namespace
}  // namespace fusebox::run
