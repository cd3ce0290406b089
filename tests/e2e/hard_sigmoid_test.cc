// SPDX-License-Identifier: Apache-2.0
// LSTM layers whose activations TFLite's op cannot say become fusebox.lstm, from Keras files and from
// SavedModels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Rnn = samples::Keras3RnnOptions;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr char kOurs[] = "fusebox.lstm", kBuiltin[] = "UNIDIRECTIONAL_SEQUENCE_LSTM";
constexpr int64_t kInputs = 4;

struct Form {
  const char* name;
  json config;
  const char* op = kOurs;
  const char* version = "2.9.0";
  int ops = 1;
  int64_t units = 3;
};

std::string WriteLayer(const Form& form, int64_t rows = 2) {
  const int64_t u = form.units;
  json config = {{"units", u}, {"activation", "tanh"}, {"recurrent_activation", "hard_sigmoid"}};
  config.update(form.config);
  const bool biased = config.value("use_bias", true);
  const auto weights = [&](const std::string& prefix) {
    WeightShapes shapes = {{prefix + "kernel", {kInputs, 4 * u}}, {prefix + "recurrent_kernel", {u, 4 * u}}};
    if (biased) shapes.push_back({prefix + "bias", {4 * u}});
    return shapes;
  };
  const std::vector<int64_t> input = {rows, 5, kInputs};
  KerasCase made = OneLayer("", "LSTM", config, input, weights(""));
  if (form.ops == 2) {
    WeightShapes both = weights("forward_l/");
    for (const auto& shape : weights("backward_l/")) both.push_back(shape);
    made = OneLayer("", "Bidirectional", {{"layer", LayerEntry("LSTM", config, "l")}, {"merge_mode", "sum"}},
                    input, both);
  }
  made.model.version = form.version;
  const std::string file = TestDir() + "/layer.h5";
  WriteH5(file, made.model);
  return file;
}

converter::Options OptionsFor(converter::Composites composites) {
  converter::Options options;
  options.registry = *Plugins();
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return options;
}

Result<Written> ConvertLayer(const std::string& file, converter::Composites composites) {
  return Convert(file, OptionsFor(composites), composites == converter::Composites::kFuse ? "fused" : "loop");
}

std::string Notes(const converter::Report& report) {
  std::string all;
  for (const std::string& note : report.notes) all += note + "\n";
  return all;
}

class OtherLstm : public ::testing::TestWithParam<Form> {};

TEST_P(OtherLstm, IsFusedAndAgreesWithItsLoopOnEveryCall) {
  const Form& form = GetParam();
  const std::string file = WriteLayer(form);
  const auto fused = ConvertLayer(file, converter::Composites::kFuse),
             loop = ConvertLayer(file, converter::Composites::kInline);
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  for (const SiteReport& site : fused->report.sites) {
    if (site.composite == "keras.bidirectional") {
      EXPECT_THAT(site.why, HasSubstr("gates are always sigmoid"));
      continue;
    }
    EXPECT_TRUE(site.fused) << site.why;
    EXPECT_THAT(site.verification, HasSubstr("agrees (f64"));
  }
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)[form.op], form.ops);
  for (const auto& node : (*module)->functions[0]->nodes) EXPECT_FALSE(node->is(Op::kFullyConnected));
  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t call = 1; call <= 4; ++call) {
    Tensors x = {Random({DType::kF32, {2, 5, kInputs}}, call)};
    std::vector<float> wide(x[0].data.As<float>().begin(), x[0].data.As<float>().end());
    for (float& v : wide) v *= 4;  // beyond where the gates are straight lines
    x[0].data = Buffer::Of<float>(wide);
    const auto ours = Invoke(**a, x), theirs = Invoke(**b, x);
    ASSERT_OK(ours);
    ASSERT_OK(theirs);
    EXPECT_EQ(Difference(*ours, *theirs, 1e-6, 1e-6), "") << "call " << call;
  }
}

const json kSequence = {{"return_sequences", true}};
const Form kForms[] = {
    {"last", json::object()},
    {"sequence", kSequence},
    {"keras_3", kSequence, kOurs, "3.3.3"},
    {"backwards", {{"go_backwards", true}, {"return_sequences", true}}},
    {"backwards_last", {{"go_backwards", true}}},
    {"stateful", {{"stateful", true}, {"return_sequences", true}}},
    {"without_bias", {{"use_bias", false}}},
    {"many_units", kSequence, kOurs, "2.9.0", 1, 37},
    {"relu", {{"activation", "relu"}}},
    {"linear", {{"activation", "linear"}}},
    {"sigmoid_cell", {{"activation", "sigmoid"}, {"recurrent_activation", "sigmoid"}}},
    {"hard_cell", {{"activation", "hard_sigmoid"}, {"return_sequences", true}}},
    {"tanh_gates", {{"recurrent_activation", "tanh"}}},
    {"relu_gates", {{"recurrent_activation", "relu"}}},
    {"relu6_gates", {{"recurrent_activation", "relu6"}}},
    {"bidirectional", kSequence, kOurs, "2.9.0", 2},
    {"bidirectional_last", json::object(), kOurs, "3.3.3", 2},
    {"as_the_op_says_it", {{"recurrent_activation", "sigmoid"}}, kBuiltin},
};

INSTANTIATE_TEST_SUITE_P(All, OtherLstm, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OtherLstms, SayWhichActivationTheRuleDeclines) {
  const Form cell{"", {{"activation", "softsign"}}}, gates{"", {{"recurrent_activation", "softsign"}}};
  for (const auto& [form, key] : {std::pair{cell, "activation"}, {gates, "recurrent_activation"}}) {
    const auto converted = ConvertLayer(WriteLayer(form), converter::Composites::kFuse);
    ASSERT_OK(converted);
    ASSERT_EQ(converted->report.sites.size(), 1u);
    EXPECT_FALSE(converted->report.sites[0].fused);
    EXPECT_THAT(converted->report.sites[0].why,
                HasSubstr(std::string("is softsign, which is not supported (attr ") + key + ")"));
    const auto module = tflite::ReadFile(converted->path);
    ASSERT_OK(module);
    EXPECT_EQ(OpsOf(**module)["WHILE"], 1);
  }
}

TEST(OtherLstms, StayLoopsOfBuiltinOpsWhereThatIsAskedFor) {
  Config config = PluginConfig();
  config.options["fusebox.rnn"].Set("lstm", std::string("builtin"));
  for (const bool hard : {true, false}) {
    const Form form{"", {{"recurrent_activation", hard ? "hard_sigmoid" : "sigmoid"}}};
    converter::Options options;
    options.registry = *Registry::Create(config);
    const auto written = Convert(WriteLayer(form), options, "builtin");
    ASSERT_OK(written);
    ASSERT_EQ(written->report.sites.size(), 1u);
    EXPECT_EQ(written->report.sites[0].fused, !hard);
    EXPECT_EQ(written->report.sites[0].why.find("allows builtin ops only") != std::string::npos, hard);
    const auto module = tflite::ReadFile(written->path);
    ASSERT_OK(module);
    EXPECT_EQ(OpsOf(**module)["WHILE"], hard);
    EXPECT_EQ(OpsOf(**module)[kOurs], 0);
  }
}

TEST(OtherLstms, RunByTheirBodiesWithoutThePlugin) {
  const auto fused = ConvertLayer(WriteLayer({"", kSequence}), converter::Composites::kFuse);
  ASSERT_OK(fused);
  const auto with = Open(fused->path, *Plugins()), without = Open(fused->path, *Plugins({}));
  ASSERT_OK(with);
  ASSERT_OK(without);
  const Tensors x = RandomInputs(**with, 3);
  const auto a = Invoke(**with, x), b = Invoke(**without, x);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(Difference(*a, *b, 1e-6, 1e-6), "");
}

// A loop that no file names: recognized by what it computes.
TEST(OtherLstms, AreRecognizedInSavedModels) {
  for (const auto gates : {Rnn::Gates::kHardSigmoid, Rnn::Gates::kHardSigmoidOfKeras3}) {
    const std::string dir = TestDir() + "/rnn";
    ASSERT_OK(samples::WriteKeras3Rnn(dir, 7, {.return_sequences = true, .gates = gates}));
    converter::Options options = OptionsFor(converter::Composites::kFuse);
    options.signatures = {"serve"};
    const auto fused = Convert(dir, options, "fused");
    ASSERT_OK(fused);
    ASSERT_EQ(fused->report.sites.size(), 1u);
    EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
    const auto module = tflite::ReadFile(fused->path);
    ASSERT_OK(module);
    EXPECT_EQ(OpsOf(**module)[kOurs], 1);
  }
}

TEST(OtherLstms, AreNearTheirFloatFormWithWeightsOf8Bits) {
  const Form form{"", {{"return_sequences", true}}, kOurs, "2.9.0", 1, 40};
  const std::string file = WriteLayer(form);
  converter::Options options = OptionsFor(converter::Composites::kFuse);
  options.verify = converter::Verification::kOff;
  const auto floats = Convert(file, options, "floats");
  options.quantization = converter::Quantization::kDynamic;
  const auto bytes = Convert(file, options, "bytes");
  ASSERT_OK(floats);
  ASSERT_OK(bytes);
  const auto module = tflite::ReadFile(bytes->path);
  ASSERT_OK(module);
  int stored = 0;
  const Function& f = *(*module)->functions[0];
  for (const auto& node : f.nodes) {
    if (node->name != kOurs) continue;
    for (size_t i = 1; i < 9; ++i) stored += f.value(node->operands[i]).type.dtype == DType::kI8;
    EXPECT_TRUE(node->attrs.b("asymmetric_quantize_inputs", false));
  }
  EXPECT_EQ(stored, 8);
  auto a = Open(floats->path, *Plugins()), b = Open(bytes->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  const Tensors inputs = RandomInputs(**a, 1);
  const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
  ASSERT_OK(x);
  ASSERT_OK(y);
  EXPECT_EQ(Difference(*y, *x, 0.03, 0), "");
  EXPECT_NE(Difference(*y, *x, 1e-6, 0), "");
}

TEST(OtherLstms, StayFloatsInIntegerModels) {
  const std::string file = WriteLayer({"", {{"return_sequences", true}}, kOurs, "2.9.0", 1, 40}, 1);
  converter::Options options = OptionsFor(converter::Composites::kFuse);
  options.verify = converter::Verification::kOff;
  const auto floats = Convert(file, options, "floats");
  options.quantization = converter::Quantization::kInt8;
  options.calibration = TestDir() + "/calibration";
  std::filesystem::create_directories(options.calibration);
  ASSERT_OK(WriteNpy(options.calibration + "/in0.npy", Random({DType::kF32, {1, 5, kInputs}}, 9)));
  const auto integers = Convert(file, options, "integers");
  ASSERT_OK(floats);
  ASSERT_OK(integers);
  const auto module = tflite::ReadFile(integers->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)[kOurs], 1);
  EXPECT_THAT(Notes(integers->report), HasSubstr("(fusebox.lstm): stays f32: no 8-bit form"));
  auto a = Open(floats->path, *Plugins()), b = Open(integers->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  const Tensors inputs = RandomInputs(**a, 1);
  const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
  ASSERT_OK(x);
  ASSERT_OK(y);
  EXPECT_EQ(Difference(*y, *x, 0.03, 0), "");
}

}  // namespace
}  // namespace fusebox::testing
