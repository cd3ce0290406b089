// SPDX-License-Identifier: Apache-2.0
// Keras' recurrent layers of the project's own, fused: beside stock TFLite, which must give the same on every
// call, and beside the layers of TensorFlow.js.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/peers/tfjs.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using samples::RecurrentOptions;
using Cell = RecurrentOptions::Cell;
using Merge = RecurrentOptions::Merge;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

Result<Written> Fused(const RecurrentOptions& layer, bool builtin_gru = false,
                      converter::Quantization quantization = converter::Quantization::kNone) {
  Config config = PluginConfig();
  if (builtin_gru) config.options["fusebox.rnn"].Set("gru", std::string("builtin"));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Registry::Create(config));
  if (layer.batch < 0) options.batch = 2;
  options.quantization = quantization;
  FUSEBOX_TRY(samples::WriteRecurrent(TestDir() + "/model", 1, layer));
  return Convert(TestDir() + "/model", options, "fused");
}

// The same inputs to both, three times in one session each, with no reset.
void ExpectEqual(const std::string& path) {
  auto ours = Open(path, *Plugins());
  auto stock = Stock::Open(path);
  ASSERT_OK(ours);
  ASSERT_OK(stock);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    Tensors first;
    for (int run = 0; run < 3; ++run) {
      const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
      ASSERT_OK(a);
      ASSERT_OK(b);
      EXPECT_EQ(Difference(*a, *b), "") << "seed " << seed << ", run " << run;
      if (run == 0) first = *b;
      EXPECT_EQ(Difference(*b, first, 0, 0), "") << "stock, seed " << seed << ", run " << run;
      EXPECT_EQ(Difference(*a, first), "") << "ours, seed " << seed << ", run " << run;
    }
  }
}

struct Form {
  const char* name;
  RecurrentOptions options;
};

class StockRunsRecurrent : public ::testing::TestWithParam<Form> {};

TEST_P(StockRunsRecurrent, AsWeDoOnEveryCall) {
  FUSEBOX_NEEDS_STOCK();
  const auto written = Fused(GetParam().options, true);
  ASSERT_OK(written);
  ExpectEqual(written->path);
}

const Form kStockForms[] = {
    {"simple_rnn", {.cell = Cell::kSimpleRnn, .return_sequences = true, .return_state = true}},
    {"lstm", {.cell = Cell::kLstm, .return_sequences = true, .return_state = true}},
    {"lstm_input_state", {.cell = Cell::kLstm, .batch = 2, .return_state = true, .input_state = true}},
    {"lstm_backwards", {.cell = Cell::kLstm, .go_backwards = true, .return_state = true}},
    {"simple_rnn_relu", {.cell = Cell::kSimpleRnn, .activation = RecurrentOptions::Activation::kRelu}},
    {"simple_rnn_time_major", {.cell = Cell::kSimpleRnn, .time_major = true, .return_sequences = true}},
    {"simple_rnn_backwards", {.cell = Cell::kSimpleRnn, .go_backwards = true}},
    {"simple_rnn_input_state",
     {.cell = Cell::kSimpleRnn, .batch = 2, .return_state = true, .input_state = true}},
    {"gru_of_builtin_ops", {.return_sequences = true}},
    {"gru_of_builtin_ops_input_state", {.batch = 2, .return_state = true, .input_state = true}},
    {"gru_reset_before_of_builtin_ops", {.cell = Cell::kGruResetBefore}},
    {"bidirectional",
     {.cell = Cell::kLstm, .return_sequences = true, .return_state = true, .merge = Merge::kConcat}},
    {"bidirectional_of_one_row",
     {.cell = Cell::kLstm, .batch = 1, .return_sequences = true, .merge = Merge::kConcat}},
    {"bidirectional_time_major",
     {.cell = Cell::kLstm, .time_major = true, .return_sequences = true, .merge = Merge::kConcat}},
    {"bidirectional_other_units",
     {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kConcat, .backward_units = 3}},
    {"bidirectional_last", {.cell = Cell::kLstm, .merge = Merge::kConcat}},
    {"bidirectional_kept_last",
     {.cell = Cell::kLstm, .last_step_only = true, .return_state = true, .merge = Merge::kConcat}},
    {"bidirectional_kept_last_time_major",
     {.cell = Cell::kLstm, .time_major = true, .last_step_only = true, .merge = Merge::kSum}},
    {"bidirectional_kept_last_read",
     {.cell = Cell::kLstm, .return_sequences = true, .last_step_only = true, .merge = Merge::kSeparate}},
    {"bidirectional_sum", {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kSum}},
    {"bidirectional_input_states",
     {.cell = Cell::kLstm,
      .batch = 2,
      .return_sequences = true,
      .return_state = true,
      .input_state = true,
      .merge = Merge::kConcat}},
};

INSTANTIATE_TEST_SUITE_P(All, StockRunsRecurrent, ::testing::ValuesIn(kStockForms),
                         [](const auto& info) { return std::string(info.param.name); });

bool HasBytes(const Module& module) {
  const Function& f = *module.functions[0];
  return std::ranges::any_of(f.nodes, [&](const auto& node) {
    return Info(node->op).effects == Effects::kStateful &&
           f.value(node->operands[2]).type.dtype == DType::kI8;
  });
}

class StockRunsHybrid : public ::testing::TestWithParam<Form> {};

// With weights of 8 bits: what stock gives, the same on every call, and near what the float layer gives.
TEST_P(StockRunsHybrid, AsWeDoOnEveryCall) {
  FUSEBOX_NEEDS_STOCK();
  RecurrentOptions layer = GetParam().options;
  layer.inputs = layer.units = 48;
  const auto floats = Fused(layer);
  ASSERT_OK(floats);
  auto exact = Open(floats->path, *Plugins());
  ASSERT_OK(exact);
  const Tensors inputs = RandomInputs(**exact, 3);
  const auto expected = Invoke(**exact, inputs);
  ASSERT_OK(expected);
  const auto hybrid = Fused(layer, false, converter::Quantization::kDynamic);
  ASSERT_OK(hybrid);
  const auto module = tflite::ReadFile(hybrid->path);
  ASSERT_OK(module);
  EXPECT_TRUE(HasBytes(**module));
  auto ours = Open(hybrid->path, *Plugins());
  ASSERT_OK(ours);
  auto stock = Stock::Open(hybrid->path);
  ASSERT_OK(stock);
  for (int call = 0; call < 3; ++call) {
    const auto here = Invoke(**ours, inputs), there = (*stock)->Invoke(inputs);
    ASSERT_OK(here);
    ASSERT_OK(there);
    EXPECT_EQ(Difference(*here, *there, 1e-5, 1e-5), "") << "call " << call;
    EXPECT_EQ(Difference(*here, *expected, 0.05, 0.05), "") << "call " << call;
  }
}

const Form kHybridForms[] = {
    {"lstm", {.cell = Cell::kLstm, .return_sequences = true}},
    {"lstm_input_state", {.cell = Cell::kLstm, .batch = 2, .return_state = true, .input_state = true}},
    {"simple_rnn", {.cell = Cell::kSimpleRnn, .return_sequences = true}},
    {"simple_rnn_input_state",
     {.cell = Cell::kSimpleRnn, .batch = 2, .return_state = true, .input_state = true}},
    {"bidirectional", {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kConcat}},
    {"bidirectional_batch", {.cell = Cell::kLstm, .batch = 3, .merge = Merge::kSum}},
};
INSTANTIATE_TEST_SUITE_P(All, StockRunsHybrid, ::testing::ValuesIn(kHybridForms),
                         [](const auto& info) { return std::string(info.param.name); });

// The same file with activations of 8 bits. Stock has kernels for that form of the unidirectional LSTM alone;
// that ours decline the others therefore keeps no model from running here that runs there.
void ToBytes(Module& module) {
  const auto quant = std::make_shared<const Quant>(Quant{.scales = {1.0f / 128}, .zero_points = {0}});
  for (const auto& function : module.functions) {
    for (ValueId id = 0; id < function->value_count(); ++id) {
      Value& value = function->value(id);
      if (value.type.dtype != DType::kF32 || value.is_const()) continue;
      value.type.dtype = DType::kI8;
      value.quant = quant;
    }
    for (const auto& node : function->nodes) {
      if (!node->is(Op::kFill)) continue;  // the states' zeros
      Value& zero = function->value(node->operands[1]);
      zero.type.dtype = DType::kI8;
      zero.data = Buffer::Of<int8_t>(std::vector<int8_t>{0});
      zero.quant = quant;
    }
  }
}

TEST(StockRunsBytes, NeitherTheBidirectionalLstmNorTheSimpleRnn) {
  FUSEBOX_NEEDS_STOCK();
  for (const Form& form : kHybridForms) {
    if (form.options.input_state || form.options.batch > 1 || std::string_view(form.name) == "lstm") continue;
    SCOPED_TRACE(form.name);
    RecurrentOptions layer = form.options;
    layer.inputs = layer.units = 48;
    const auto hybrid = Fused(layer, false, converter::Quantization::kDynamic);
    ASSERT_OK(hybrid);
    auto module = tflite::ReadFile(hybrid->path);
    ASSERT_OK(module);
    ToBytes(**module);
    const std::string path = TestDir() + "/bytes.tflite";
    ASSERT_OK(tflite::WriteFile(**module, path));
    auto stock = Stock::Open(path);
    Status ran;
    if (stock) ran = (*stock)->Run();
    else ran = std::unexpected(stock.error());
    ASSERT_FALSE(ran);
    std::printf("%s: %s\n", form.name, ran.error().message.c_str());
    EXPECT_THAT(ran.error().message, ::testing::HasSubstr("SEQUENCE"));
    const auto ours = Open(path, *Plugins());
    ASSERT_FALSE(ours);
    std::printf("%s here: %s\n", form.name, ours.error().message.c_str());
  }
}

TEST(StockRunsMasked, LayersOfKerasFilesAsWeDoOnEveryCall) {
  FUSEBOX_NEEDS_STOCK();
  converter::Options options;
  auto registry = Plugins();
  ASSERT_OK(registry);
  options.registry = *registry;
  int masked = 0;
  for (const KerasCase& one : RecurrentCases()) {
    if (one.name != "masked LSTM" && one.name != "masked SimpleRNN") continue;
    SCOPED_TRACE(one.name);
    const std::string file = TestDir() + "/masked.h5";
    WriteH5(file, one.model);
    const auto written = Convert(file, options, "masked");
    ASSERT_OK(written);
    for (const SiteReport& site : written->report.sites) EXPECT_TRUE(site.fused) << site.why;
    ExpectEqual(written->path);
    ++masked;
  }
  EXPECT_EQ(masked, 2);
}

// Its states start at zero, as TFLite's variable tensors do.
TEST(StockRunsStateful, KeepsAndResetsTheStatesOfAStatefulLayer) {
  FUSEBOX_NEEDS_STOCK();
  for (const Cell cell : {Cell::kLstm, Cell::kSimpleRnn}) {
    const auto written = Fused({.cell = cell, .batch = 1, .stateful = true});
    ASSERT_OK(written);
    auto ours = Open(written->path, *Plugins());
    auto stock = Stock::Open(written->path);
    ASSERT_OK(ours);
    ASSERT_OK(stock);
    for (int pass = 0; pass < 2; ++pass) {
      for (uint64_t call = 1; call <= 4; ++call) {
        const Tensors inputs = RandomInputs(**ours, call);
        const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
        ASSERT_OK(a);
        ASSERT_OK(b);
        EXPECT_EQ(Difference(*a, *b), "") << "pass " << pass << ", call " << call;
      }
      (*ours)->ResetState();
      ASSERT_OK((*stock)->ResetVariables());
    }
  }
}

struct TfjsForm {
  const char* name;
  RecurrentOptions options;
  const char* layer;
  const char* config;
};

class TfjsRecurrent : public ::testing::TestWithParam<TfjsForm> {};

TEST_P(TfjsRecurrent, AgreesWithTheFusedLayer) {
  FUSEBOX_NEEDS_TFJS();
  const TfjsForm& form = GetParam();
  const auto written = Fused(form.options);
  ASSERT_OK(written);
  auto ours = Open(written->path, *Plugins());
  ASSERT_OK(ours);
  const std::string cell = "layer_with_weights-0/cell/";
  auto weights =
      Weights(TestDir() + "/model", {cell + "kernel/", cell + "recurrent_kernel/", cell + "bias/"});
  ASSERT_OK(weights);
  nlohmann::json config = nlohmann::json::parse(form.config);
  config["units"] = form.options.units;
  config["inputShape"] = {form.options.steps, form.options.inputs};
  Tensors inputs;
  for (uint64_t seed = 1; seed <= 5; ++seed) inputs.push_back(RandomInputs(**ours, seed)[0]);
  const auto expected = RunTfjs({{form.layer, config, *weights}}, inputs);
  ASSERT_OK(expected);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto outputs = Invoke(**ours, {inputs[i]});
    ASSERT_OK(outputs);
    EXPECT_EQ(Difference(*outputs, {(*expected)[i]}), "") << "seed " << i + 1;
  }
}

const TfjsForm kTfjsForms[] = {
    {"gru_reset_before",
     {.cell = Cell::kGruResetBefore},
     "gru",
     R"({"resetAfter": false, "recurrentActivation": "sigmoid"})"},
    {"gru_reset_before_backwards",
     {.cell = Cell::kGruResetBefore, .go_backwards = true, .return_sequences = true},
     "gru",
     R"({"resetAfter": false, "recurrentActivation": "sigmoid", "goBackwards": true, "returnSequences": true})"},
    {"simple_rnn",
     {.cell = Cell::kSimpleRnn, .return_sequences = true},
     "simpleRNN",
     R"({"returnSequences": true})"},
    {"simple_rnn_relu",
     {.cell = Cell::kSimpleRnn, .activation = RecurrentOptions::Activation::kRelu},
     "simpleRNN",
     R"({"activation": "relu"})"},
};

INSTANTIATE_TEST_SUITE_P(All, TfjsRecurrent, ::testing::ValuesIn(kTfjsForms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
