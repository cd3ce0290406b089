// SPDX-License-Identifier: Apache-2.0
// A GRU is stored in integers: types and scales of its operands, and its distance from f32.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/peers/lstm_int8.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using samples::RecurrentOptions;
using ::testing::HasSubstr;
using Cell = RecurrentOptions::Cell;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Gru {
  Written plain, dynamic, integers;
  std::unique_ptr<Module> module;  // of the integers

  const Node& op() const {
    return **std::ranges::find_if(module->functions[0]->nodes,
                                  [](const auto& node) { return node->is(Op::kCustom); });
  }
  const Value& operand(size_t i) const { return module->functions[0]->value(op().operands[i]); }
  const Value& result(size_t i) const { return module->functions[0]->value(op().results[i]); }
  std::string Types() const {
    std::string out;
    for (const ValueId v : op().operands)
      out += (v == kNoValue ? "none" : std::string(Name(module->functions[0]->value(v).type.dtype))) + " ";
    return out;
  }
};

Result<Gru> ConvertGru(const RecurrentOptions& layer) {
  Gru out;
  const std::string dir = TestDir() + "/gru";
  std::filesystem::remove_all(dir);
  FUSEBOX_TRY(samples::WriteRecurrent(dir, 1, layer));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins());
  FUSEBOX_ASSIGN(out.plain, Convert(dir, options, "plain"));
  options.quantization = converter::Quantization::kDynamic;
  FUSEBOX_ASSIGN(out.dynamic, Convert(dir, options, "dynamic"));
  options.quantization = converter::Quantization::kInt8;
  options.calibration = TestDir() + "/calibration";
  std::filesystem::create_directories(options.calibration);
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(out.plain.path));
  const auto samples = NoiseSamples(*module, 100);
  for (size_t i = 0; i < samples.size(); ++i)
    FUSEBOX_TRY(WriteNpy(options.calibration + "/in" + std::to_string(i) + ".npy", samples[i]));
  FUSEBOX_ASSIGN(out.integers, Convert(dir, options, "int8"));
  FUSEBOX_ASSIGN(out.module, tflite::ReadFile(out.integers.path));
  return out;
}

// The largest error of the first output, in steps of the op's output.
Result<double> StepsApart(const Gru& gru, const std::string& path) {
  FUSEBOX_ASSIGN(const auto registry, Plugins());
  FUSEBOX_ASSIGN(const auto f32, Open(gru.plain.path, registry));
  FUSEBOX_ASSIGN(const auto session, Open(path, registry));
  double largest = 0;
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    const Tensors inputs = RandomInputs(*f32, seed);
    FUSEBOX_ASSIGN(const Tensors was, Invoke(*f32, inputs));
    FUSEBOX_ASSIGN(const Tensors is, Invoke(*session, inputs));
    const auto a = was[0].data.As<float>(), b = is[0].data.As<float>();
    for (size_t i = 0; i < a.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest / gru.result(0).quant->scales[0];
}

RecurrentOptions Layer(Cell cell) {
  return {.cell = cell, .batch = 2, .steps = 12, .inputs = 16, .units = 17, .return_sequences = true};
}

TEST(Gru8, StoresAllOperandsInIntegers) {
  for (const Cell cell : {Cell::kGru, Cell::kGruResetBefore}) {
    RecurrentOptions layer = Layer(cell);
    layer.return_state = layer.input_state = true;
    const auto gru = ConvertGru(layer);
    ASSERT_OK(gru);
    ASSERT_EQ(gru->Types(), cell == Cell::kGru ? "i8 i8 i8 i8 i32 i32 " : "i8 i8 i8 i8 i32 none ");
    EXPECT_EQ(*gru->operand(1).quant, *gru->result(0).quant);
    EXPECT_EQ(*gru->operand(1).quant, *gru->result(1).quant);
    EXPECT_FLOAT_EQ(gru->operand(4).quant->scales[0],
                    gru->operand(0).quant->scales[0] * gru->operand(2).quant->scales[0]);
    EXPECT_THAT(gru->integers.report.notes, ::testing::IsEmpty());
  }
}

// Both forms read vectors of 8 bits. The integer form also rounds its inputs to calibrated ranges and its
// output.
TEST(Gru8, IsNearItsFloatForm) {
  for (const Cell cell : {Cell::kGru, Cell::kGruResetBefore}) {
    const auto gru = ConvertGru(Layer(cell));
    ASSERT_OK(gru);
    ASSERT_EQ(gru->operand(0).type.dtype, DType::kI8);
    const auto integers = StepsApart(*gru, gru->integers.path);
    const auto dynamic = StepsApart(*gru, gru->dynamic.path);
    ASSERT_OK(integers);
    ASSERT_OK(dynamic);
    std::cout << "off by at most " << *integers << " steps; with 8-bit weights beside f32 " << *dynamic
              << "\n";
    EXPECT_LE(*integers, 3);
    EXPECT_LE(*integers, *dynamic + 2);
  }
}

TEST(Gru8, StaysInF32WithOtherActivations) {
  RecurrentOptions layer = Layer(Cell::kGru);
  layer.activation = RecurrentOptions::Activation::kRelu;
  const auto gru = ConvertGru(layer);
  ASSERT_OK(gru);
  EXPECT_EQ(gru->Types(), "f32 f32 i8 i8 f32 f32 ");
  EXPECT_THAT(gru->integers.report.notes,
              ::testing::Contains(::testing::AllOf(HasSubstr("stays f32: no 8-bit form"),
                                                   HasSubstr("is not tanh beside i8"))));
}

}  // namespace
}  // namespace fusebox::testing
