// SPDX-License-Identifier: Apache-2.0
// Loops whose batch and length only a run knows: in our host, in stock TFLite, and as the fused op that
// stands for them.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

Result<Written> OpenForm(const std::string& dir, const std::vector<std::string>& plugins,
                         const std::string& tag) {
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins(plugins));
  return Convert(dir, options, tag);
}

// One input for each batch, some of them twice, of the declared type with every open size but the batch set
// to `steps`.
Tensors Batches(const Type& declared, int batch_axis, int64_t steps) {
  Tensors inputs;
  for (const int64_t batch : {1, 2, 3, 1, 3}) {
    Type type = declared;
    for (int64_t& dim : type.shape.dims())
      if (dim < 0) dim = steps;
    type.shape.dims()[static_cast<size_t>(batch_axis)] = batch;
    inputs.push_back(Random(type, static_cast<uint64_t>(batch * 10 + steps)));
  }
  return inputs;
}

class OpenLoop : public ::testing::TestWithParam<const char*> {
 protected:
  void Convert() {
    const auto dir = Sample(GetParam());
    ASSERT_OK(dir);
    const auto loop = OpenForm(*dir, {}, "loop");
    ASSERT_OK(loop);
    const auto fused = OpenForm(*dir, {"fusebox.rnn"}, "fused");
    ASSERT_OK(fused);
    const auto module = tflite::ReadFile(loop->path);
    ASSERT_OK(module);
    ASSERT_EQ(OpsOf(**module).at("WHILE"), 1);
    loop_ = loop->path;
    fused_ = fused->path;
  }
  int batch_axis() const { return std::string(GetParam()) == "lstm_time_major" ? 1 : 0; }

  std::string loop_, fused_;
};

TEST_P(OpenLoop, IsTheFusedOpForEveryBatchOfOneSession) {
  ASSERT_NO_FATAL_FAILURE(Convert());
  auto loop = Open(loop_, *Plugins({})), fused = Open(fused_, *Plugins());
  ASSERT_OK(loop);
  ASSERT_OK(fused);
  for (const int64_t steps : {5, 2, 7}) {
    for (const Tensor& x : Batches((*loop)->inputs()[0].type, batch_axis(), steps)) {
      const auto a = Invoke(**loop, {x}), b = Invoke(**fused, {x});
      ASSERT_OK(a);
      ASSERT_OK(b);
      EXPECT_EQ(Difference(*a, *b, 1e-6, 0), "") << ToString(x.type);
    }
  }
}

TEST_P(OpenLoop, RunsInStockTfliteAfterEveryResize) {
  FUSEBOX_NEEDS_STOCK();
  ASSERT_NO_FATAL_FAILURE(Convert());
  auto ours = Open(loop_, *Plugins({}));
  ASSERT_OK(ours);
  auto stock = Stock::Open(loop_);
  ASSERT_OK(stock);
  for (const int64_t steps : {5, 2, 7}) {
    for (const Tensor& x : Batches((*ours)->inputs()[0].type, batch_axis(), steps)) {
      const auto a = Invoke(**ours, {x}), b = (*stock)->Invoke({x});
      ASSERT_OK(a);
      ASSERT_OK(b);
      EXPECT_EQ(Difference(*a, *b, 1e-6, 0), "") << ToString(x.type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpenLoop,
                         ::testing::Values("keras_lstm", "lstm_sequences", "lstm_time_major",
                                           "lstm_backwards", "lstm_last_step", "lstm_computed_state",
                                           "lstm_four_gates"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusebox::testing
