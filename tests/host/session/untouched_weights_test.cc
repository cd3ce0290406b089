// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using ::testing::ElementsAre;

// Pages that cannot be read before Show.
class HiddenWeights {
 public:
  explicit HiddenWeights(std::vector<int8_t> values)
      : size_(values.size()),
        memory_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::ranges::copy(values, static_cast<int8_t*>(memory_));
    mprotect(memory_, size_, PROT_NONE);
  }
  ~HiddenWeights() { munmap(memory_, size_); }
  HiddenWeights(const HiddenWeights&) = delete;
  Buffer buffer() const { return Buffer::Borrow({static_cast<const std::byte*>(memory_), size_}); }
  void Show() { mprotect(memory_, size_, PROT_READ); }

 private:
  size_t size_;
  void* memory_;
};

// f32[?,2] -> FULLY_CONNECTED with 8-bit weights of scale 1.
std::unique_ptr<Module> Hybrid(const HiddenWeights& weights) {
  auto module = std::make_unique<Module>();
  module->source = "hybrid.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(run::F32({1, 2}), "x");
  const ValueId w = f.AddConst(Type{DType::kI8, {3, 2}}, weights.buffer());
  Quant quant;
  quant.scales = {1};
  quant.zero_points = {0};
  f.value(w).quant = std::make_shared<const Quant>(quant);
  f.outputs = {f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {run::F32({1, 3})}).results[0]};
  return module;
}

TEST(Opening, TouchesNoWeights) {
  HiddenWeights weights({1, 0, 0, 1, -1, -1});
  const auto session = Started(Opened(Hybrid(weights)));
  ASSERT_TRUE(session->Prepare());
  weights.Show();
  const float x[] = {127, 0};
  ASSERT_TRUE(session->SetInput(0, {run::F32({1, 2}), Buffer::Of<float>(x)}));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(Output(*session), ElementsAre(127, 0, -127));
}

}  // namespace
}  // namespace fusebox::session_test
