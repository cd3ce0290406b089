// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "host/eval/budget.h"
#include "host/session.h"
#include "tests/host/run/graphs.h"

namespace fusebox {
namespace {

using run::Custom;
using run::F32;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMegabyte = 1 << 20;

std::shared_ptr<const Model> Opened(std::unique_ptr<Module> module) {
  module->source = "test.tflite";
  auto model = Model::FromModule(std::move(module), {.registry = run::TestRegistry()});
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

// 2 (2 (2 x)), the two inner values in the arena.
std::shared_ptr<const Model> Doubled(std::vector<int64_t> dims) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  ValueId v = f.AddInput(F32(dims), "x");
  for (const char* name : {"a", "b", "c"}) {
    v = Custom(f, "test.twice", {v}, F32(dims));
    f.value(v).name = name;
  }
  f.outputs = {v};
  return Opened(std::move(module));
}

std::string MessageOf(const Status& status) {
  EXPECT_FALSE(status);
  return status ? "" : status.error().message;
}

TEST(MemoryLimit, ADeclaredGiantInputIsRefusedByName) {
  const auto session = Session::Create(Doubled({1, 1, 2097151999, 3}), {.memory_limit = 8ull << 30});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, Code::kOutOfMemory);
  EXPECT_THAT(session.error().message, AllOf(HasSubstr("input 0 'x'"), HasSubstr("f32[1,1,2097151999,3]"),
                                             HasSubstr("the memory limit is 8589934592 bytes")));
}

TEST(MemoryLimit, TheDefaultIsAPartOfWhatTheMachineHas) {
  EXPECT_GT(MemoryBudget::DefaultLimit(), 64 * kMegabyte);
  const auto session = Session::Create(Doubled({1, 1 << 20, 1 << 20, 3}));  // 12 TiB
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message,
              HasSubstr("the memory limit is " + std::to_string(MemoryBudget::DefaultLimit())));
  EXPECT_LE(MemoryBudget::DefaultLimit(), std::max(AvailableMemory("/"), 64 * kMegabyte));
}

TEST(MemoryLimit, HoldsForResizedInputs) {
  const auto session = Session::Create(Doubled({-1, 256}), {.memory_limit = kMegabyte});
  ASSERT_TRUE(session);
  EXPECT_THAT(MessageOf((*session)->Resize(0, Shape({4096, 256}))), HasSubstr("input 0 'x'"));
  ASSERT_TRUE((*session)->Resize(0, Shape({16, 256})));
  EXPECT_TRUE((*session)->Run());
}

TEST(MemoryLimit, AResultAboveItIsRefusedByName) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({1, 1}), "x");
  const ValueId to = f.AddConst<int32_t>(DType::kI32, {2}, {1024, 1024});
  const ValueId wide = f.AddNode(Op::kBroadcastTo, {x, to}, {F32({1024, 1024})}).results[0];
  f.value(wide).name = "wide";
  f.outputs = {wide};
  const auto model = Opened(std::move(module));
  const auto session = Session::Create(model, {.memory_limit = kMegabyte});
  ASSERT_TRUE(session);
  EXPECT_THAT(MessageOf((*session)->Prepare()),
              AllOf(HasSubstr("result 'wide', f32[1024,1024]"), HasSubstr("4194304 bytes are needed")));
  const auto enough = Session::Create(model, {.memory_limit = 8 * kMegabyte});
  ASSERT_TRUE(enough);
  EXPECT_TRUE((*enough)->Run());
}

// Input, arena and output fit one by one, but not together.
TEST(MemoryLimit, CountsAllMemoryOfTheSession) {
  const auto model = Doubled({400, 256});  // 400 KiB each
  const auto session = Session::Create(model, {.memory_limit = kMegabyte});
  ASSERT_TRUE(session);
  EXPECT_THAT(MessageOf((*session)->Run()), HasSubstr("the memory limit is 1048576 bytes"));
  const auto enough = Session::Create(model, {.memory_limit = 3 * kMegabyte});
  ASSERT_TRUE(enough);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE((*enough)->Run());
}

// Planning names the tensor that does not fit before any memory is touched.
TEST(MemoryLimit, PreparingReservesWhatARunNeeds) {
  const auto model = Doubled({400, 256});  // 400 KiB each
  const auto prepared = [&](size_t limit) {
    const auto session = Session::Create(model, {.memory_limit = limit});
    EXPECT_TRUE(session);
    return (*session)->Prepare();
  };
  EXPECT_THAT(MessageOf(prepared(kMegabyte / 2)),
              HasSubstr("intermediate values, the largest of which is 'a', f32[400,256]"));
  EXPECT_THAT(MessageOf(prepared(kMegabyte * 3 / 2)), HasSubstr("output 0 'c', f32[400,256]"));
  EXPECT_TRUE(prepared(kMegabyte * 2));
}

TEST(MemoryLimit, DoesNotCountBoundMemory) {
  const auto session = Session::Create(Doubled({400, 256}), {.memory_limit = kMegabyte * 3 / 2});
  ASSERT_TRUE(session);
  const Buffer input = Buffer::Copy(std::vector<std::byte>(409600));
  const std::span memory(const_cast<std::byte*>(input.data()), input.size() + kOverread);
  EXPECT_FALSE((*session)->Prepare());
  ASSERT_TRUE((*session)->BindInput(0, memory));
  EXPECT_TRUE((*session)->Run());
  EXPECT_FALSE((*session)->BindInput(0, {}));  // the session needs memory again
}

TEST(MemoryLimit, TheDefaultIsOfAllSessionsTogether) {
  const size_t limit = MemoryBudget::DefaultLimit();
  MemoryBudget one(0), other(0), own(limit);
  one.Take(limit / 4 * 3);
  EXPECT_THROW(other.Take(limit / 2), NoMemory);
  own.Take(limit);
  one.Return(limit / 4 * 3);
  other.Take(limit / 2);
  other.Return(limit / 2);
  EXPECT_THROW(one.Take(SIZE_MAX), NoMemory);
}

// while (shorter(x, 1 << 20)) x = append(x)
TEST(MemoryLimit, EndsALoopWhoseValuesGrow) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  Function& condition = module->Add("condition");
  Function& body = module->Add("body");
  const Type open = F32({-1});
  Attrs than, loop;
  than.Set("than", 1 << 20);
  condition.outputs = {Custom(condition, "test.shorter", {condition.AddInput(open)},
                              {DType::kBool, Shape(std::vector<int64_t>())}, than)};
  body.outputs = {Custom(body, "test.append", {body.AddInput(open)}, open)};
  loop.Set("cond_subgraph_index", FunctionRef{"condition"});
  loop.Set("body_subgraph_index", FunctionRef{"body"});
  f.outputs = f.AddNode(Op::kWhile, {f.AddInput(open, "x")}, {open}, loop).results;
  const auto session = Session::Create(Opened(std::move(module)), {.memory_limit = 64 << 10});
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->Resize(0, Shape({1})));
  const Status ran = (*session)->Run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, Code::kOutOfMemory) << ran.error().message;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(AvailableMemory, IsTheSmallestOfMachineAndCgroups) {
  const std::string root = ::testing::TempDir() + "available_memory/";
  std::filesystem::remove_all(root);
  EXPECT_EQ(AvailableMemory(root), SIZE_MAX);
  WriteFile(root + "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:   8000 kB\n");
  EXPECT_EQ(AvailableMemory(root), 8000u * 1024);
  WriteFile(root + "proc/self/cgroup", "5:memory:/v1\n0::/a/b\n");
  WriteFile(root + "sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root), 8000u * 1024);
  WriteFile(root + "sys/fs/cgroup/a/memory.max", "5000000\n");
  WriteFile(root + "sys/fs/cgroup/a/memory.current", "1000000\n");
  EXPECT_EQ(AvailableMemory(root), 4000000u);
  WriteFile(root + "sys/fs/cgroup/memory/v1/memory.limit_in_bytes", "3000000\n");
  WriteFile(root + "sys/fs/cgroup/memory/v1/memory.usage_in_bytes", "3500000\n");
  EXPECT_EQ(AvailableMemory(root), 0u);
  WriteFile(root + "sys/fs/cgroup/memory/v1/memory.stat",
            "inactive_file 9\ntotal_inactive_file 1000000\ntotal_active_file 500000\n");
  EXPECT_EQ(AvailableMemory(root), 1000000u);
  WriteFile(root + "proc/self/limits",
            "Max stack size 8 8 bytes\nMax address space  900000  unlimited bytes\n");
  WriteFile(root + "proc/self/status", "Name: x\nVmSize:\t     400 kB\n");
  EXPECT_EQ(AvailableMemory(root), 900000u - 400 * 1024);
  WriteFile(root + "proc/self/limits", "Max address space         unlimited  unlimited bytes\n");
  EXPECT_EQ(AvailableMemory(root), 1000000u);
}

}  // namespace
}  // namespace fusebox
