// SPDX-License-Identifier: Apache-2.0
// LSTM nets of every form that the converter stores in integers: how far from their f32 form, and in stock
// TFLite.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "host/tflite/tflite.h"
#include "tests/peers/lstm_int8.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

constexpr uint64_t kSamplesTried = 50;
constexpr int64_t kSamplesCalibrated = 100;

struct Error {
  double largest = 0, squares = 0, count = 0;

  double rms() const { return std::sqrt(squares / count); }
  void Add(const Tensor& was, const Tensor& is) {
    const auto a = was.data.As<float>(), b = is.data.As<float>();
    for (size_t i = 0; i < a.size(); ++i, ++count) {
      const double error = std::abs(static_cast<double>(a[i]) - b[i]);
      largest = std::max(largest, error);
      squares += error * error;
    }
  }
};

// Of the op's output, in steps of 8 bits: what storing the weights costs alone, and all of it.
struct Cost {
  Error weights, all;
  double step = 0;
};

// On samples that were not calibrated on. Outputs are the op's and both final states.
Result<Cost> CostOf(const Module& plain, const IntegerForm& form, bool beside_stock) {
  FUSEBOX_ASSIGN(const auto registry, Plugins());
  const std::string stored = TestDir() + "/stored.tflite";
  FUSEBOX_TRY(tflite::WriteFile(*WithStoredWeights(plain, form), stored));
  FUSEBOX_ASSIGN(const auto f32, Open(form.plain, registry));
  FUSEBOX_ASSIGN(const auto of_stored, Open(stored, registry));
  FUSEBOX_ASSIGN(const auto integers, Open(form.path, registry));
  FUSEBOX_ASSIGN(const auto stock, Stock::Open(form.path));
  Cost cost;
  cost.step = form.function().value(form.lstm().results[0]).quant->scales[0];
  for (uint64_t seed = 1000; seed < 1000 + kSamplesTried; ++seed) {
    const Tensors inputs = RandomInputs(*f32, seed);
    FUSEBOX_ASSIGN(const Tensors was, Invoke(*f32, inputs));
    FUSEBOX_ASSIGN(const Tensors rounded, Invoke(*of_stored, inputs));
    FUSEBOX_ASSIGN(const Tensors is, Invoke(*integers, inputs));
    FUSEBOX_ASSIGN(const Tensors theirs, stock->Invoke(inputs));
    cost.weights.Add(was[0], rounded[0]);
    cost.all.Add(was[0], is[0]);
    if (!beside_stock) continue;
    EXPECT_EQ(Difference(is, theirs, 0, 0), "") << "stock, seed " << seed;
  }
  return cost;
}

// With peepholes and a projection stock is right where there are as many outputs as cells
// (docs/composites.md).
bool IsRightInStock(const LstmNet& net) { return !net.peephole || !net.outputs || net.outputs == net.cells; }

// The first is the measure.
std::vector<LstmNet> Forms() {
  std::vector<LstmNet> nets = {
      {.name = "plain"},
      {.name = "peephole", .peephole = true},
      {.name = "projection", .outputs = 9},
      {.name = "projection_bias", .outputs = 9, .projection_bias = true},
      {.name = "projection_clips",
       .outputs = 9,
       .projection_bias = true,
       .cell_clip = 0.4F,
       .projection_clip = 0.9F},
      {.name = "projection_cifg", .outputs = 9, .cifg = true},
      {.name = "norm", .layer_norm = true},
      {.name = "norm_time_major", .batch = 3, .time_major = true, .layer_norm = true},
      {.name = "norm_cifg_peephole", .cifg = true, .peephole = true, .layer_norm = true},
      {.name = "norm_cell_clip", .layer_norm = true, .cell_clip = 0.5F},
      {.name = "both", .batch = 2, .outputs = 9, .layer_norm = true},
      {.name = "both_peephole", .outputs = 16, .peephole = true, .projection_bias = true, .layer_norm = true},
      {.name = "both_peephole_narrow",
       .outputs = 9,
       .peephole = true,
       .projection_bias = true,
       .layer_norm = true},
      {.name = "both_cifg_clips",
       .outputs = 9,
       .cifg = true,
       .layer_norm = true,
       .cell_clip = 0.5F,
       .projection_clip = 0.9F},
      {.name = "both_one_step", .batch = 2, .outputs = 9, .one_step = true, .layer_norm = true}};
  for (LstmNet& net : nets) net.steps = 12, net.inputs = 10, net.cells = 16;
  return nets;
}

// Values of 8 bits are as coarse as weights of 8 bits, and products see both alike: together they cost no
// more than twice what the weights do alone. The output is rounded once more: by the root of 1/12 of a step,
// on average.
TEST(Lstm8, OfEveryFormIsAsNearItsFloatFormAsItsWeightsAndEqualInStock) {
  FUSEBOX_NEEDS_STOCK();
  double plain = 0;
  for (const LstmNet& net : Forms()) {
    SCOPED_TRACE(net.name);
    const auto module = net.Module();
    const auto form = ToIntegers(*module, net.name, NoiseSamples(*module, kSamplesCalibrated));
    ASSERT_TRUE(form) << form.error().message;
    ASSERT_EQ(form->TypeOf(0), "i8") << form->notes;
    ASSERT_EQ(form->TypeOf(19), "i16");
    const auto cost = CostOf(*module, *form, IsRightInStock(net));
    ASSERT_TRUE(cost) << cost.error().message;
    const double steps = cost->all.rms() / cost->step;
    if (plain == 0) plain = steps;
    std::cout << net.name << ": a step is " << cost->step << "; off by at most "
              << cost->all.largest / cost->step << " steps, rms " << steps << ", of that the weights "
              << cost->weights.rms() / cost->step << "\n";
    EXPECT_LE(steps, 2 * cost->weights.rms() / cost->step + std::sqrt(1.0 / 12));
    EXPECT_LE(steps, 2 * plain);
  }
}

// From a SavedModel to integers: a projection with both clips, and layer normalization with coupled gates.
TEST(Lstm8, OfALingvoCellIsEqualInStock) {
  FUSEBOX_NEEDS_STOCK();
  converter::Options options;
  options.batch = 1;
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  options.registry = *registry;
  for (const char* name : {"lingvo_projection", "lingvo_norm_coupled"}) {
    SCOPED_TRACE(name);
    const auto dir = Sample(name);
    ASSERT_TRUE(dir) << dir.error().message;
    const auto plain = Convert(*dir, options, "f32");
    ASSERT_TRUE(plain) << plain.error().message;
    const auto module = tflite::ReadFile(plain->path);
    ASSERT_TRUE(module) << module.error().message;
    const auto form = ToIntegers(**module, name, NoiseSamples(**module, kSamplesCalibrated));
    ASSERT_TRUE(form) << form.error().message;
    ASSERT_EQ(form->TypeOf(0), "i8") << form->notes;
    const auto cost = CostOf(**module, *form, true);
    ASSERT_TRUE(cost) << cost.error().message;
    std::cout << name << ": off by at most " << cost->all.largest / cost->step << " steps, rms "
              << cost->all.rms() / cost->step << ", of that the weights " << cost->weights.rms() / cost->step
              << "\n";
    EXPECT_LE(cost->all.rms(), 2 * cost->weights.rms() + cost->step * std::sqrt(1.0 / 12));
  }
}

}  // namespace
}  // namespace fusebox::testing
