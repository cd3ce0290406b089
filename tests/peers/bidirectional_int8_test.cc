// SPDX-License-Identifier: Apache-2.0
// Bidirectional LSTMs stored as two integer LSTMs: their distance from f32, and their results in stock
// TFLite.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/peers/lstm_int8.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using samples::RecurrentOptions;
using Merge = RecurrentOptions::Merge;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

// Values beyond the calibrated ranges are cut off, so the samples must cover them.
constexpr int64_t kPairSamples = 1000;

// The largest and the rms error of the first output, in steps of an 8-bit value of this range. Inputs are not
// the calibration data.
struct PairError {
  double largest = 0, rms = 0;
};

// Runs both files; stock must agree with the integers in every bit, on every call.
Result<PairError> ErrorOfPair(const IntegerForm& form) {
  FUSEBOX_ASSIGN(const auto registry, Plugins());
  FUSEBOX_ASSIGN(const auto f32, Open(form.plain, registry));
  FUSEBOX_ASSIGN(const auto integers, Open(form.path, registry));
  FUSEBOX_ASSIGN(const auto stock, Stock::Open(form.path));
  double largest = 0, squares = 0, count = 0;
  float least = 0, most = 0;
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    const Tensors inputs = RandomInputs(*f32, seed);
    FUSEBOX_ASSIGN(const Tensors was, Invoke(*f32, inputs));
    FUSEBOX_ASSIGN(const Tensors is, Invoke(*integers, inputs));
    FUSEBOX_ASSIGN(const Tensors theirs, stock->Invoke(inputs));
    EXPECT_EQ(Difference(is, theirs, 0, 0), "") << "stock, seed " << seed;
    const auto a = was[0].data.As<float>(), b = is[0].data.As<float>();
    for (size_t i = 0; i < a.size(); ++i, ++count) {
      const double error = std::abs(static_cast<double>(a[i]) - b[i]);
      largest = std::max(largest, error);
      squares += error * error;
      least = std::min(least, a[i]);
      most = std::max(most, a[i]);
    }
  }
  const double step = (static_cast<double>(most) - least) / 255;
  return PairError{largest / step, std::sqrt(squares / count) / step};
}

struct PairForm {
  const char* name;
  BidirectionalLstmNet net;
};

std::vector<PairForm> PairForms() {
  std::vector<PairForm> forms;
  for (const bool merge : {false, true}) {
    for (const bool time_major : {false, true}) {
      forms.push_back({"plain", {.half = {.batch = 1, .time_major = time_major}, .merge = merge}});
      forms.push_back({"rows", {.half = {.batch = 3, .time_major = time_major}, .merge = merge}});
    }
    forms.push_back({"projection", {.half = {.outputs = 9, .projection_bias = true}, .merge = merge}});
    forms.push_back({"peephole", {.half = {.peephole = true}, .merge = merge}});
    forms.push_back({"cifg_clips", {.half = {.cifg = true, .cell_clip = 0.5F}, .merge = merge}});
  }
  for (PairForm& form : forms) form.net.half.steps = 12, form.net.half.inputs = 10, form.net.half.cells = 16;
  return forms;
}

// Twice the rounding of all values and weights of the unidirectional form (lstm_int8_test.cc).
TEST(Bidirectional8, OfEveryFormIsNearItsFloatFormAndEqualInStock) {
  FUSEBOX_NEEDS_STOCK();
  for (const PairForm& form : PairForms()) {
    SCOPED_TRACE(form.name);
    const auto module = form.net.Module();
    const auto stored = ToIntegers(*module, form.name, NoiseSamples(*module, kPairSamples));
    ASSERT_OK(stored);
    auto ops = OpsOf(*stored->module);
    ASSERT_EQ(ops["UNIDIRECTIONAL_SEQUENCE_LSTM"], 2) << stored->notes;
    for (const auto& node : stored->function().nodes) {
      if (!node->is(Op::kUnidirectionalSequenceLstm)) continue;
      EXPECT_EQ(stored->function().value(node->operands[19]).type.dtype, DType::kI16) << stored->notes;
    }
    const auto error = ErrorOfPair(*stored);
    ASSERT_OK(error);
    std::cout << form.name << (form.net.merge ? ", merged" : "")
              << (form.net.half.time_major ? ", time-major" : "") << ": off by at most " << error->largest
              << " steps, rms " << error->rms << "\n";
    EXPECT_LE(error->rms, 2);
    EXPECT_LE(error->largest, 5);
  }
}

// Converts a model with one bidirectional op to f32, then to integers.
void ExpectEqualInStock(const std::string& model) {
  converter::Options options;
  options.registry = *Plugins();
  const auto plain = Convert(model, options, "plain");
  ASSERT_OK(plain);
  const auto module = tflite::ReadFile(plain->path);
  ASSERT_OK(module);
  ASSERT_EQ(OpsOf(**module)["BIDIRECTIONAL_SEQUENCE_LSTM"], 1);
  const auto form = ToIntegers(**module, "layer", NoiseSamples(**module, kPairSamples));
  ASSERT_OK(form);
  auto ops = OpsOf(*form->module);
  EXPECT_EQ(ops["BIDIRECTIONAL_SEQUENCE_LSTM"], 0);
  EXPECT_EQ(form->TypeOf(0), "i8") << form->notes;
  const auto error = ErrorOfPair(*form);
  ASSERT_OK(error);
  std::cout << "off by at most " << error->largest << " steps, rms " << error->rms << "\n";
  EXPECT_LE(error->rms, 2);
}

TEST(Bidirectional8, OfASavedModelIsEqualInStock) {
  FUSEBOX_NEEDS_STOCK();
  const RecurrentOptions layers[] = {
      {.batch = 2, .return_sequences = true, .merge = Merge::kConcat},
      {.batch = 1, .time_major = true, .return_sequences = true, .merge = Merge::kConcat},
      {.batch = 1, .return_sequences = true, .return_state = true, .merge = Merge::kConcat},
      {.batch = 2, .merge = Merge::kConcat},
      {.batch = 2, .last_step_only = true, .merge = Merge::kConcat},
      {.batch = 2, .return_sequences = true, .merge = Merge::kSum}};
  for (RecurrentOptions layer : layers) {
    layer.cell = RecurrentOptions::Cell::kLstm;
    layer.inputs = layer.units = 16;
    layer.steps = 12;
    const std::string dir = TestDir() + "/model";
    std::filesystem::remove_all(dir);
    ASSERT_OK(samples::WriteRecurrent(dir, 1, layer));
    ExpectEqualInStock(dir);
  }
}

TEST(Bidirectional8, OfAKerasFileIsEqualInStock) {
  FUSEBOX_NEEDS_STOCK();
  int found = 0;
  for (const KerasCase& layer : RecurrentCases()) {
    if (!layer.name.starts_with("Bidirectional ")) continue;
    SCOPED_TRACE(layer.name);
    const std::string file = TestDir() + "/layer.h5";
    WriteH5(file, layer.model);
    ExpectEqualInStock(file);
    ++found;
  }
  EXPECT_EQ(found, 8);
}

}  // namespace
}  // namespace fusebox::testing
