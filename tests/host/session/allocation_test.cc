// SPDX-License-Identifier: Apache-2.0
// A run with shapes that were seen before allocates nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "host/session.h"
#include "tests/host/run/graphs.h"

namespace {
std::atomic<int> allocations = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* block = alignment == 0
                    ? std::malloc(size)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

void* operator new(std::size_t size) { return Allocate(size == 0 ? 1 : size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace fusebox {
namespace {

using run::Custom;
using run::F32;
using run::Floats;

std::unique_ptr<Session> SessionOf(std::unique_ptr<Module> module) {
  auto model = Model::FromModule(std::move(module), {.registry = run::TestRegistry()});
  EXPECT_TRUE(model) << model.error().message;
  return *Session::Create(*model);
}

// Allocations of a run after each input has been seen once.
int SteadyAllocations(Session& session, const std::vector<std::vector<Tensor>>& inputs) {
  int steady = 0;
  for (int round = 0; round < 3; ++round) {
    for (const auto& values : inputs) {
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(session.SetInput(static_cast<int>(i), values[i]));
      const int before = allocations;
      const Status status = session.Run();
      if (round == 2) steady += allocations - before;
      EXPECT_TRUE(status) << status.error().message;
    }
  }
  return steady;
}

TEST(Allocation, TheCounterCounts) {
  const int before = allocations;
  ::operator delete(::operator new(sizeof(int)));  // a compiler may leave out `delete new int`
  EXPECT_EQ(allocations - before, 1);
}

TEST(Allocation, NoneInAPlainFunctionNorWhenShapesComeBack) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1}));
  f.outputs = {Custom(f, "test.count", {Custom(f, "test.inplace", {x}, F32({-1}))}, F32({-1}))};
  const auto session = SessionOf(std::move(module));
  EXPECT_EQ(SteadyAllocations(*session, {{Floats({1, 2})}, {Floats({1, 2, 3})}}), 0);
}

TEST(Allocation, NoneWhereResultsAreSizedByTheRun) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId where = Custom(f, "test.nonzero", {f.AddInput(F32({-1}))}, {DType::kI64, {-1}});
  f.outputs = {where, f.AddNode(Op::kAbs, {where}, {{DType::kI64, {-1}}}).results[0]};
  const auto session = SessionOf(std::move(module));
  EXPECT_EQ(SteadyAllocations(*session, {{Floats({1, 2})}, {Floats({0, 2})}}), 0);
}

TEST(Allocation, NoneInALoopOverVariables) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type counter{DType::kF32, {-1}}, flag{DType::kBool, Shape(std::vector<int64_t>())};
  const auto handle = [](Function& g) {
    Attrs attrs;
    attrs.Set("shared_name", "v");
    return g.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape(std::vector<int64_t>())}}, attrs)
        .results[0];
  };
  Function& condition = module->Add("condition");
  Attrs than;
  than.Set("than", 6);
  condition.outputs = {Custom(condition, "test.shorter", {condition.AddInput(counter)}, flag, than)};
  Function& body = module->Add("body");
  const ValueId x = body.AddInput(counter);
  const ValueId v = handle(body);
  const ValueId old = body.AddNode(Op::kReadVariable, {v}, {F32({1})}).results[0];
  body.AddNode(Op::kAssignVariable, {v, Custom(body, "test.inplace", {old}, F32({1}))}, {});
  body.outputs = {Custom(body, "test.append", {x}, counter)};
  Attrs functions;
  functions.Set("cond_subgraph_index", FunctionRef{"condition"});
  functions.Set("body_subgraph_index", FunctionRef{"body"});
  f.outputs = f.AddNode(Op::kWhile, {f.AddInput(counter)}, {counter}, functions).results;
  module->variables.push_back(
      {"v", "", F32({1}), Buffer::Of<float>(std::vector<float>{0}), Variable::Mutability::kMutable, ""});
  const auto session = SessionOf(std::move(module));
  EXPECT_EQ(SteadyAllocations(*session, {{Floats({1, 2})}}), 0);
}

}  // namespace
}  // namespace fusebox
