// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs that a program binds to one memory, such as a KV cache that a run updates.
#include <gmock/gmock.h>

#include <vector>

#include "host/session.h"

namespace fusebox::state_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Type kCache{DType::kF32, Shape{4, 2}}, kRow{DType::kF32, Shape{1, 2}};

// Rows of a cache, with 16 readable bytes behind them.
struct alignas(64) Memory {
  float values[8] = {};
  float tail[8] = {};
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values)); }
};

// main(cache, row, start) -> the cache with the row, and what the test adds.
class Cache {
 public:
  Cache() : f_(&module_->Add("main")) {
    module_->source = "cache.tflite";
    cache_ = f_->AddInput(kCache, "cache");
    const ValueId row = f_->AddInput(kRow, "row");
    const ValueId start = f_->AddInput({DType::kI32, Shape{2}}, "start");
    updated_ = f_->AddNode(Op::kDynamicUpdateSlice, {cache_, row, start}, {kCache}).results[0];
    f_->value(updated_).name = "updated";
    f_->outputs = {updated_};
  }
  ValueId cache() const { return cache_; }
  ValueId updated() const { return updated_; }
  ValueId Sum(ValueId a, ValueId b) { return f_->AddNode(Op::kAdd, {a, b}, {kCache}).results[0]; }
  void Return(ValueId value) { f_->outputs.push_back(value); }

  Session& Open() {
    Config config;
    config.search_default_path = false;
    auto registry = Registry::Create(config);
    EXPECT_TRUE(registry);
    auto model = Model::FromModule(std::move(module_), {.registry = *registry});
    EXPECT_TRUE(model) << model.error().message;
    session_ = *Session::Create(*model, {});
    return *session_;
  }
  Status Run(float row, int32_t start) {
    EXPECT_TRUE(session_->SetInput(1, {kRow, Buffer::Of<float>(std::vector<float>{row, row + 1})}));
    EXPECT_TRUE(session_->SetInput(
        2, {{DType::kI32, Shape{2}}, Buffer::Of<int32_t>(std::vector<int32_t>{start, 0})}));
    return session_->Run();
  }
  std::string ErrorOfRun() {
    const Status status = Run(1, 0);
    return status ? "" : status.error().message;
  }

 private:
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Function* f_;
  ValueId cache_, updated_;
  std::unique_ptr<Session> session_;
};

std::vector<float> Floats(const Session& session, int output) {
  const auto tensor = session.output(output);
  EXPECT_TRUE(tensor);
  const auto* values = reinterpret_cast<const float*>(tensor->data.data());
  return {values, values + tensor->data.size() / sizeof(float)};
}

TEST(SharedMemory, IsUpdatedInPlace) {
  Cache cache;
  cache.Return(cache.Sum(cache.updated(), cache.updated()));
  Session& session = cache.Open();
  Memory memory;
  ASSERT_TRUE(session.BindInput(0, memory.bytes()));
  ASSERT_TRUE(session.BindOutput(0, memory.bytes()));
  ASSERT_TRUE(cache.Run(1, 0));
  ASSERT_TRUE(cache.Run(3, 2));
  EXPECT_THAT(memory.values, ElementsAre(1, 2, 0, 0, 3, 4, 0, 0));
  EXPECT_THAT(Floats(session, 1), ElementsAre(2, 4, 0, 0, 6, 8, 0, 0));
  EXPECT_EQ(Floats(session, 0).front(), 1);
}

TEST(SharedMemory, MayBeAnInputThatIsReadBeforehand) {
  Cache cache;
  cache.Return(cache.Sum(cache.updated(), cache.Sum(cache.updated(), cache.updated())));
  Session& session = cache.Open();
  Memory memory;
  memory.values[7] = 1;
  ASSERT_TRUE(session.BindInput(0, memory.bytes()));
  ASSERT_TRUE(session.BindOutput(1, memory.bytes()));
  ASSERT_TRUE(cache.Run(1, 0));
  EXPECT_THAT(memory.values, ElementsAre(3, 6, 0, 0, 0, 0, 0, 3));
}

TEST(SharedMemory, IsAnErrorIfTheInputIsReadLater) {
  Cache cache;
  cache.Return(cache.Sum(cache.cache(), cache.updated()));
  Session& session = cache.Open();
  Memory memory, other;
  ASSERT_TRUE(session.BindInput(0, memory.bytes()));
  ASSERT_TRUE(session.BindOutput(0, memory.bytes()));
  EXPECT_EQ(cache.ErrorOfRun(),
            "cache.tflite: output 0 'updated' has the memory of input 0 'cache': node 1 ADD reads the input "
            "when the "
            "output is written, or later");
  ASSERT_TRUE(session.BindOutput(0, other.bytes()));
  EXPECT_EQ(cache.ErrorOfRun(), "");
  EXPECT_THAT(other.values, ElementsAre(1, 2, 0, 0, 0, 0, 0, 0));
}

TEST(SharedMemory, IsAnErrorIfTheInputIsAnOutputToo) {
  Cache cache;
  cache.Return(cache.cache());
  Session& session = cache.Open();
  Memory memory;
  ASSERT_TRUE(session.BindInput(0, memory.bytes()));
  ASSERT_TRUE(session.BindOutput(0, memory.bytes()));
  EXPECT_THAT(cache.ErrorOfRun(), HasSubstr("input 0 'cache': the input is an output itself"));
}

TEST(SharedMemory, IsCopiedWhereKernelsCannotUseIt) {
  Cache cache;
  cache.Return(cache.Sum(cache.cache(), cache.updated()));
  Session& session = cache.Open();
  struct alignas(64) {
    float before = 0;
    float values[8] = {0, 0, 0, 0, 5, 6, 0, 0};
  } memory;
  ASSERT_TRUE(session.BindInput(0, std::as_writable_bytes(std::span(memory.values))));
  ASSERT_TRUE(session.BindOutput(0, std::as_writable_bytes(std::span(memory.values))));
  ASSERT_TRUE(cache.Run(1, 0));
  EXPECT_THAT(memory.values, ElementsAre(1, 2, 0, 0, 5, 6, 0, 0));
  EXPECT_THAT(Floats(session, 1), ElementsAre(1, 2, 0, 0, 10, 12, 0, 0));
}

TEST(SharedMemory, MayNotOverlapInPart) {
  Cache cache;
  cache.Return(cache.Sum(cache.updated(), cache.updated()));
  Session& session = cache.Open();
  alignas(64) float memory[32] = {};
  const auto at = [&](size_t i) { return std::as_writable_bytes(std::span(memory + i, 8)); };
  ASSERT_TRUE(session.BindInput(0, at(0)));
  EXPECT_EQ(
      session.BindOutput(0, at(4)).error().message,
      "cache.tflite: output 0 'updated': the memory overlaps that of input 0 'cache'; it must be the same or "
      "other memory");
  ASSERT_TRUE(session.BindOutput(0, at(8)));
  EXPECT_THAT(session.BindOutput(1, at(8)).error().message, HasSubstr("overlaps that of output 0 'updated'"));
  EXPECT_THAT(session.BindInput(0, at(4)).error().message, HasSubstr("overlaps that of output 0 'updated'"));
}

}  // namespace
}  // namespace fusebox::state_test
