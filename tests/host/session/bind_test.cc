// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Memory as kernels need it: aligned, with 16 readable bytes after four floats.
struct alignas(64) Aligned {
  float values[4] = {1, 2, 3, 4};
  float tail[4] = {};
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values)); }
  std::span<std::byte> with_tail() { return {bytes().data(), 32}; }
};

TEST(Bind, KernelsUseTheMemoryItself) {
  const auto session = Started(Opened(Row({"probe.seen"})));
  Aligned in, out;
  for (const bool tail : {false, true}) {
    ASSERT_TRUE(session->BindInput(0, tail ? in.with_tail() : in.bytes()));
    const Status bound = session->BindOutput(0, tail ? out.with_tail() : out.bytes());
    ASSERT_TRUE(bound) << bound.error().message;
    ASSERT_TRUE(session->Run());
    EXPECT_THAT(out.values, ElementsAre(2, 3, 4, 5));
    EXPECT_EQ(probe::read, in.values);
    EXPECT_EQ(probe::written, out.values);
  }
  in.values[0] = 10;
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(out.values[0], 11);
  EXPECT_EQ(static_cast<const void*>(session->output(0)->data.data()), out.values);
  EXPECT_EQ(session->output(0)->type, run::F32({4}));
  EXPECT_EQ(static_cast<void*>(session->InputData(0)->data()), in.values);
}

TEST(Bind, CopiesWhereKernelsCannotUseTheMemory) {
  const auto session = Started(Opened(Row({"probe.seen"})));
  struct alignas(64) Shifted {
    float before = 0;
    float values[4] = {1, 2, 3, 4};
  } in, out;
  ASSERT_TRUE(session->BindInput(0, std::as_writable_bytes(std::span(in.values))));
  ASSERT_TRUE(session->BindOutput(0, std::as_writable_bytes(std::span(out.values))));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(out.values, ElementsAre(2, 3, 4, 5));
  EXPECT_NE(probe::read, in.values);
  EXPECT_NE(probe::written, out.values);
}

TEST(Bind, CopiesWhereThePageEndsWithTheTensor) {
  alignas(4096) static std::byte page[8192];
  const auto session = Started(Opened(Row({"probe.seen"}, {16})));
  ASSERT_TRUE(session->BindInput(0, {page + 4096 - 64, 64}));
  ASSERT_TRUE(session->Run());
  EXPECT_NE(probe::read, page + 4096 - 64);
  ASSERT_TRUE(session->BindInput(0, {page + 4096 - 64, 80}));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(probe::read, page + 4096 - 64);
}

// A page whose last byte is followed by one without access.
class LastPage {
 public:
  LastPage() {
    EXPECT_NE(pages_, MAP_FAILED);
    EXPECT_EQ(mprotect(pages_, size_, PROT_READ | PROT_WRITE), 0);
  }
  ~LastPage() { munmap(pages_, 2 * size_); }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(pages_), size_}; }

 private:
  const size_t size_ = static_cast<size_t>(getpagesize());
  void* const pages_ = mmap(nullptr, 2 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

// x, f32, a page large, with `count` zeros at its end; and the result of a custom op on that.
std::unique_ptr<Module> Updated(int64_t count, const std::string& then = {}) {
  auto module = std::make_unique<Module>();
  module->source = "updated.tflite";
  Function& f = module->Add("main");
  const Type type = run::F32({1, getpagesize() / 4});
  const ValueId x = f.AddInput(type, "x");
  const ValueId zeros =
      f.AddConst<float>(DType::kF32, {1, count}, std::vector<float>(static_cast<size_t>(count)));
  const ValueId start = f.AddConst<int32_t>(DType::kI32, {2}, {0, INT32_MAX});
  const ValueId y = f.AddNode(Op::kDynamicUpdateSlice, {x, zeros, start}, {type}).results[0];
  f.outputs = {y};
  if (!then.empty()) f.outputs.push_back(run::Custom(f, then, {y}, type));
  return module;
}

TEST(Bind, UsesMemoryThatEndsWithTheTensorWhereKernelsReadNoFurther) {
  LastPage memory;
  const auto session = Started(Opened(Updated(3)));
  const std::span values(reinterpret_cast<float*>(memory.bytes().data()), memory.bytes().size() / 4);
  std::ranges::fill(values, 1.0F);
  ASSERT_TRUE(session->BindInput(0, memory.bytes()));
  ASSERT_TRUE(session->BindOutput(0, memory.bytes()));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->InputData(0)->data(), memory.bytes().data());
  EXPECT_EQ(session->output(0)->data.data(), memory.bytes().data());
  EXPECT_THAT(values.last(4), ElementsAre(1, 0, 0, 0));
}

TEST(Bind, CopiesMemoryThatEndsWithTheTensorForOtherPlugins) {
  LastPage memory;
  const auto session = Started(Opened(Updated(3, "probe.seen")));
  ASSERT_TRUE(session->BindInput(0, memory.bytes()));
  ASSERT_TRUE(session->BindOutput(0, memory.bytes()));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->InputData(0)->data(), memory.bytes().data()) << "DYNAMIC_UPDATE_SLICE alone reads it";
  EXPECT_NE(session->output(0)->data.data(), memory.bytes().data());
  EXPECT_NE(probe::read, memory.bytes().data());
}

TEST(Bind, EndsWithAnEmptySpanAndWithSetInput) {
  const auto session = Started(Opened(Row({"probe.seen"})));
  Aligned in, out;
  ASSERT_TRUE(session->BindInput(0, in.bytes()));
  ASSERT_TRUE(session->BindOutput(0, out.bytes()));
  ASSERT_TRUE(session->SetInput(0, run::Floats({5, 5, 5, 5})));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(out.values, ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(in.values, ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(session->BindInput(0, in.bytes()));
  ASSERT_TRUE(session->BindInput(0, {}));
  ASSERT_TRUE(session->BindOutput(0, {}));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(out.values, ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(Output(*session), ElementsAre(1, 1, 1, 1));
}

TEST(Bind, EndsWithAnotherShape) {
  const auto session = Started(Opened(Row({"probe.seen"}, {-1})));
  Aligned in, out;
  EXPECT_THAT(session->BindInput(0, in.bytes()).error().message, HasSubstr("call Resize first"));
  EXPECT_THAT(session->BindOutput(0, out.bytes()).error().message, HasSubstr("has no value yet"));
  ASSERT_TRUE(session->Resize(0, {4}));
  ASSERT_TRUE(session->BindInput(0, in.bytes()));
  ASSERT_TRUE(session->BindOutput(0, out.bytes()));
  ASSERT_TRUE(session->Resize(0, {4}));  // the same shape
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(probe::read, in.values);
  ASSERT_TRUE(session->Resize(0, {2}));
  out = {};
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(Output(*session), ElementsAre(1, 1));
  EXPECT_EQ(out.values[0], 1) << "as initialized: the output is not bound any more";
  EXPECT_NE(probe::read, in.values);
}

TEST(Bind, RefusesSizesThatDoNotFit) {
  const auto session = Started(Opened(Row({"probe.seen"})));
  Aligned memory;
  EXPECT_EQ(session->BindInput(0, memory.bytes().first(12)).error().message,
            "row.tflite: input 0 'x': memory of 12 bytes, expected 16, or 32 of which the last 16 are only "
            "readable");
  EXPECT_THAT(session->BindOutput(0, memory.bytes().first(12)).error().message,
              HasSubstr("row.tflite: output 0 'v1': memory of 12 bytes"));
  EXPECT_THAT(session->BindOutput(1, memory.bytes()).error().message, HasSubstr("no output 1; there are 1"));
}

TEST(Bind, RefusesAResultSizedByTheRun) {
  auto module = Row({});
  Function& f = *module->functions[0];
  f.outputs = {run::Custom(f, "test.nonzero", {f.inputs[0]}, {DType::kI64, {-1}})};
  const auto session = Started(Opened(std::move(module)));
  Aligned memory;
  EXPECT_EQ(session->BindOutput(0, memory.bytes()).error().message,
            "row.tflite: output 0: its size depends on data, so memory cannot be bound to it; read it with "
            "output() after Run");
}

// Neither from a kernel: the host copies both to the bound memory.
TEST(Bind, TakesOutputsThatNoKernelWrites) {
  auto module = Row({});
  Function& f = *module->functions[0];
  f.outputs = {f.inputs[0], f.AddConst<float>(DType::kF32, {4}, {9, 8, 7, 6})};
  const auto session = Started(Opened(std::move(module)));
  Aligned in, same, constant;
  ASSERT_TRUE(session->BindInput(0, in.bytes()));
  ASSERT_TRUE(session->BindOutput(0, same.bytes()));
  ASSERT_TRUE(session->BindOutput(1, constant.bytes()));
  in.values[3] = 40;
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(same.values, ElementsAre(1, 2, 3, 40));
  EXPECT_THAT(constant.values, ElementsAre(9, 8, 7, 6));
}

TEST(Session, FindsOutputsByName) {
  const auto session = Started(Opened(Row({"test.twice"})));
  EXPECT_EQ(*session->FindOutput("v1"), 0);
  EXPECT_EQ(session->FindOutput("v2").error().message, "row.tflite: no output 'v2'; outputs: v1");
}

}  // namespace
}  // namespace fusebox::session_test
