// SPDX-License-Identifier: Apache-2.0
// LSTM ops of every variant through the kernels of plugins/rnn, beside stock TFLite's. States are values: computed before the op and read
// after it, so that every call gives the same answer.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/e2e/pipeline.h"
#include "tests/peers/lstm_net.h"
#include "tests/peers/peer.h"
#include "tests/peers/stock.h"

namespace fusebox::testing {
namespace {

// Both run the file three times; all calls agree with each other and both implementations too.
void ExpectAgreement(std::unique_ptr<Module> module, const std::string& name, double bound) {
  SCOPED_TRACE(name);
  const std::string path = TestDir() + "/" + name + ".tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  auto stock = Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  auto session = Open(path, *Plugins());
  ASSERT_TRUE(session) << session.error().message;
  const Tensors inputs = RandomInputs(**session, 3);
  Tensors first;
  for (int run = 0; run < 3; ++run) {
    const auto ours = Invoke(**session, inputs);
    ASSERT_TRUE(ours) << ours.error().message;
    const auto theirs = (*stock)->Invoke(inputs);
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(Difference(*ours, *theirs, bound, bound), "") << "run " << run;
    if (run > 0) {
      EXPECT_EQ(Difference(*ours, first, 0, 0), "") << "run " << run;
    }
    first = *ours;
  }
}

// Without an activation of NONE: stock leaves the vector that it should copy the cell state to as it was.
std::vector<LstmNet> Variants() {
  std::vector<LstmNet> nets = {
      {.name = "plain"},
      {.name = "batches", .batch = 3, .cells = 33},
      {.name = "time_major", .batch = 2, .time_major = true},
      {.name = "clipped", .cell_clip = 0.2F},
      {.name = "cifg", .cifg = true},
      {.name = "peephole", .peephole = true},
      {.name = "cifg_peephole", .batch = 2, .cifg = true, .peephole = true},
      {.name = "projection", .outputs = 4},
      {.name = "projection_bias", .outputs = 6, .projection_bias = true},
      {.name = "projection_clip", .outputs = 6, .projection_bias = true, .projection_clip = 0.1F},
      {.name = "norm", .layer_norm = true},
      {.name = "norm_cifg", .batch = 2, .cifg = true, .layer_norm = true},
      {.name = "everything",
       .batch = 3,
       .cells = 20,
       .outputs = 9,
       .peephole = true,
       .projection_bias = true,
       .layer_norm = true,
       .cell_clip = 0.5F,
       .projection_clip = 0.3F},
      {.name = "relu", .activation = "RELU"},
      {.name = "relu6", .peephole = true, .activation = "RELU6"}};
  const size_t sequences = nets.size();
  for (size_t i = 0; i < sequences; ++i) {
    if (nets[i].time_major) continue;
    LstmNet one = nets[i];
    one.one_step = true;
    one.name += "_one_step";
    nets.push_back(one);
  }
  return nets;
}

TEST(LstmPeers, EveryVariantAgreesWithStock) {
  FUSEBOX_NEEDS_STOCK();
  for (const LstmNet& net : Variants()) ExpectAgreement(net.Module(), net.name, 2e-6);
}

TEST(LstmPeers, TheBasicCellAgreesWithStock) {
  FUSEBOX_NEEDS_STOCK();
  for (const int64_t batch : {1, 4}) {
    for (const int64_t units : {1, 8, 19})
      ExpectAgreement(BasicLstmNet(batch, 5, units), "basic" + std::to_string(units), 2e-6);
  }
}

}  // namespace
}  // namespace fusebox::testing
