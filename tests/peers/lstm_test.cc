// SPDX-License-Identifier: Apache-2.0
// LSTM ops of every variant through the kernels of plugins/rnn, beside stock TFLite's. States are values:
// computed before the op and read after it, so that every call gives the same answer.
#include <gtest/gtest.h>

#include <iostream>

#include "host/tflite/tflite.h"
#include "tests/peers/lstm_net.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

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

// A sum that lies between two steps may be rounded either way, and then goes on as another number.
TEST(LstmPeers, EveryHybridVariantAgreesWithStock) {
  FUSEBOX_NEEDS_STOCK();
  using Weights = LstmNet::Weights;
  for (LstmNet net : Variants()) {
    for (const Weights weights : {Weights::kI8, Weights::kI8Asymmetric}) {
      net.weights = weights;
      ExpectAgreement(net.Module(), net.name + (weights == Weights::kI8 ? "_i8" : "_i8_asymmetric"), 1e-5);
    }
  }
}

// -128 and 127, by sign.
Tensor ToEnds(const Tensor& bytes) {
  std::vector<int8_t> ends;
  for (const int8_t v : bytes.data.As<int8_t>()) ends.push_back(v < 0 ? -128 : 127);
  return {bytes.type, Buffer::Of<int8_t>(ends)};
}

// Steps of 8 bits apart, at most, over the calls of a session that keeps its states.
int StepsApart(const IntegerLstmNet& net) {
  const std::string path = TestDir() + "/" + net.name + ".tflite";
  EXPECT_TRUE(tflite::WriteFile(*net.Module(), path));
  auto stock = Stock::Open(path);
  auto session = Open(path, *Plugins());
  EXPECT_TRUE(stock && session) << (stock ? "" : stock.error().message)
                                << (session ? "" : session.error().message);
  if (!stock || !session) return 256;
  int worst = 0;
  for (uint64_t call = 0; call < 4; ++call) {
    Tensors inputs = {xnnpack_test::NoiseFor((*session)->inputs()[0].type, static_cast<uint32_t>(call))};
    if (net.ends) inputs[0] = ToEnds(inputs[0]);
    const auto ours = Invoke(**session, inputs), theirs = (*stock)->Invoke(inputs);
    EXPECT_TRUE(ours && theirs);
    if (!ours || !theirs) return 256;
    const auto a = (*ours)[0].data.As<int8_t>(), b = (*theirs)[0].data.As<int8_t>();
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

TEST(LstmPeers, IntegersAgreeWithStock) {
  FUSEBOX_NEEDS_STOCK();
  const std::vector<IntegerLstmNet> nets = {
      {.name = "int"},
      {.name = "int_zero", .output_zero = -7},
      {.name = "int_batches", .batch = 3, .steps = 20, .inputs = 30, .cells = 33},
      {.name = "int_one_cell", .batch = 2, .inputs = 1, .cells = 1},
      {.name = "int_many_rows", .batch = 13, .steps = 3, .inputs = 67, .cells = 71},
      {.name = "int_long", .steps = 50, .inputs = 129, .cells = 65, .output_zero = -128},
      {.name = "int_ends", .batch = 2, .steps = 12, .inputs = 150, .cells = 37, .ends = true},
      {.name = "int_ends_zero", .steps = 12, .cells = 130, .output_zero = 127, .ends = true},
      {.name = "int_cifg", .steps = 10, .cifg = true},
      {.name = "int_clip", .cell_clip = 0.2F},
      {.name = "int_peephole", .steps = 10, .peephole = true},
      {.name = "int_one_step", .batch = 2, .one_step = true},
      {.name = "int_projection", .batch = 2, .steps = 10, .outputs = 6},
      {.name = "int_projection_zero", .steps = 10, .outputs = 6, .output_zero = 5},
      {.name = "int_projection_clip", .steps = 10, .outputs = 6, .projection_clip = 0.2F},
      {.name = "int_norm", .batch = 2, .steps = 10, .cells = 16, .layer_norm = true},
      {.name = "int_norm_odd", .steps = 10, .cells = 19, .layer_norm = true},
      {.name = "int_everything_odd",
       .batch = 7,
       .steps = 5,
       .inputs = 31,
       .cells = 45,
       .outputs = 45,
       .peephole = true,
       .layer_norm = true,
       .cell_clip = 0.9F,
       .output_zero = 11,
       .ends = true},
      {.name = "int_everything",
       .steps = 10,
       .cells = 20,
       .outputs = 9,
       .cifg = true,
       .peephole = true,
       .layer_norm = true,
       .cell_clip = 0.5F,
       .projection_clip = 0.3F,
       .output_zero = -3}};
  for (const IntegerLstmNet& net : nets) EXPECT_EQ(StepsApart(net), 0) << net.name;
}

// The published files.
TEST(LstmPeers, RealIntegerModelsAgreeWithStock) {
  FUSEBOX_NEEDS_STOCK();
  const std::string micro = "tflite/tensorflow__tflite-micro/";
  for (const char* file : {"tensorflow/lite/micro/examples/dtln/dtln_noise_suppression.tflite",
                           "tensorflow/lite/micro/examples/mnist_lstm/trained_lstm_int8.tflite",
                           "third_party/xtensa/examples/micro_speech_lstm/micro_speech_lstm.tflite"}) {
    FUSEBOX_NEEDS_MODEL(path, micro + file);
    SCOPED_TRACE(file);
    auto stock = Stock::Open(path);
    auto session = Open(path, *Plugins());
    ASSERT_TRUE(stock) << stock.error().message;
    ASSERT_TRUE(session) << session.error().message;
    int worst = 0;
    for (uint32_t call = 0; call < 20; ++call) {
      const Tensors inputs = {xnnpack_test::NoiseFor((*session)->inputs()[0].type, call)};
      const auto ours = Invoke(**session, inputs), theirs = (*stock)->Invoke(inputs);
      ASSERT_TRUE(ours) << ours.error().message;
      ASSERT_TRUE(theirs) << theirs.error().message;
      const auto a = (*ours)[0].data.As<int8_t>(), b = (*theirs)[0].data.As<int8_t>();
      for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    EXPECT_EQ(worst, 0);
    std::cout << file << ": " << worst << " steps apart in 20 calls\n";
  }
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
