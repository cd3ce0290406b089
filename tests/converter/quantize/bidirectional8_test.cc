// SPDX-License-Identifier: Apache-2.0
// A bidirectional LSTM becomes two integer LSTMs. Its results are compared with f32 and stock TFLite in
// tests/peers/bidirectional_int8_test.cc.
#include <gmock/gmock.h>

#include "converter/quantize/quantize.h"
#include "tests/converter/passes/bench.h"
#include "tests/peers/lstm_int8.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;

IntegerForm StoredHalves(const Module& module) {
  auto form = ToIntegers(module, "net", NoiseSamples(module, 5));
  EXPECT_TRUE(form) << form.error().message;
  return form ? *std::move(form) : IntegerForm();
}

TEST(Bidirectional8, IsTwoIntegerLstms) {
  for (const bool merge : {false, true}) {
    for (const bool time_major : {false, true}) {
      const IntegerForm form = StoredHalves(
          *BidirectionalLstmNet{.half = {.batch = 2, .time_major = time_major}, .merge = merge}.Module());
      auto ops = OpsOf(*form.module);
      EXPECT_EQ(ops["UNIDIRECTIONAL_SEQUENCE_LSTM"], 2);
      EXPECT_EQ(ops["REVERSE_V2"], 2);
      EXPECT_EQ(ops["CONCATENATION"], merge ? 1 : 0);
      EXPECT_EQ(ops["BIDIRECTIONAL_SEQUENCE_LSTM"], 0);
      for (const auto& node : form.function().nodes) {
        if (node->is(Op::kQuantize) || node->is(Op::kDequantize) || node->is(Op::kMul)) continue;
        EXPECT_EQ(form.function().value(node->operands[0]).type.dtype, DType::kI8) << Name(node->op);
        if (node->is(Op::kReverseV2)) {
          EXPECT_EQ(node->version, 3) << "the first version with 8 bits";
        }
        if (node->is(Op::kUnidirectionalSequenceLstm)) {
          EXPECT_EQ(node->attrs.b("time_major", false), time_major);
        }
      }
      EXPECT_EQ(form.notes, "");
    }
  }
}

// A half has its own scale, though both have one input.
TEST(Bidirectional8, HasAScalePerDirection) {
  const IntegerForm form = StoredHalves(*BidirectionalLstmNet{.half = {.outputs = 5}}.Module());
  std::vector<float> scales;
  for (const auto& node : form.function().nodes)
    if (node->is(Op::kUnidirectionalSequenceLstm))
      scales.push_back(form.function().value(node->results[0]).quant->scales[0]);
  ASSERT_EQ(scales.size(), 2u);
  EXPECT_NE(scales[0], scales[1]);
}

TEST(Bidirectional8, StaysOneOpWithoutAnIntegerForm) {
  const auto why = [](const Module& module) {
    const IntegerForm form = StoredHalves(module);
    EXPECT_EQ(OpsOf(*form.module)["BIDIRECTIONAL_SEQUENCE_LSTM"], 1);
    return form.notes;
  };
  EXPECT_THAT(why(*BidirectionalLstmNet{.half = {.activation = "RELU"}}.Module()),
              HasSubstr("is not split into two integer LSTM ops: its activation is not TANH"));
  EXPECT_THAT(why(*BidirectionalLstmNet{.half = {.weights = LstmNet::Weights::kI8}}.Module()),
              HasSubstr("is not split into two integer LSTM ops: its weights are i8 already"));
}

// Kernels reject such a node, so a conversion stops earlier.
TEST(Bidirectional8, StaysOneOpWithAnAuxiliaryInput) {
  const auto net = BidirectionalLstmNet().Module();
  Function& f = *net->functions[0];
  f.nodes.back()->operands[39] = f.inputs[0];
  converter::Bench bench;
  converter::quantize::SplitBidirectional(bench.context, f);
  EXPECT_TRUE(f.nodes.back()->is(Op::kBidirectionalSequenceLstm));
  EXPECT_THAT(bench.report.notes, ::testing::ElementsAre(HasSubstr("it has an auxiliary input")));
}

}  // namespace
}  // namespace fusebox::testing
