// SPDX-License-Identifier: Apache-2.0
// Masked recurrent layers of Keras files, with padding at the end, at the start and in the middle, and with
// nothing but padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr int64_t kRows = 4, kSteps = 6, kUnits = 3;

struct Form {
  const char* name;
  const char* cell;
  json config;
  const char* op;
  int ops = 1;
};

int64_t Gates(const std::string& cell) { return cell == "LSTM" ? 4 : cell == "GRU" ? 3 : 1; }

// An Embedding that masks nought, and the layer.
std::string WriteMasked(const Form& form) {
  const std::string cell = form.cell;
  const bool two = cell.starts_with("Bidirectional ");
  const std::string inner = two ? cell.substr(14) : cell;
  const int64_t columns = Gates(inner) * kUnits;
  WeightShapes shapes;
  for (const std::string& prefix :
       two ? std::vector<std::string>{"forward_l/", "backward_l/"} : std::vector<std::string>{""}) {
    shapes.push_back({prefix + "kernel", {4, columns}});
    shapes.push_back({prefix + "recurrent_kernel", {kUnits, columns}});
    shapes.push_back({prefix + "bias", {columns}});
  }
  json config = {{"units", kUnits},
                 {"activation", "tanh"},
                 {"recurrent_activation", "sigmoid"},
                 {"use_bias", true},
                 {"reset_after", false}};
  config.update(form.config);
  KerasCase made = two ? OneLayer("", "Bidirectional",
                                  {{"layer", LayerEntry(inner, config, "l")}, {"merge_mode", "concat"}},
                                  {kRows, kSteps}, shapes, "int32")
                       : OneLayer("", inner, config, {kRows, kSteps}, shapes, "int32");
  json& layers = made.model.config["config"]["layers"];
  layers.insert(layers.begin() + 1,
                LayerEntry("Embedding", {{"input_dim", 4}, {"output_dim", 4}, {"mask_zero", true}}, "embed"));
  made.model.weights.push_back({"embed", {RandomWeight("embeddings", {4, 4})}});
  const std::string file = TestDir() + "/masked.h5";
  WriteH5(file, made.model);
  return file;
}

Result<Written> ConvertMasked(const std::string& file, converter::Composites composites) {
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins());
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return Convert(file, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

Tensor Ids() {
  return {{DType::kI32, {kRows, kSteps}}, Buffer::Of<int32_t>(std::vector<int32_t>{1, 2, 3, 0, 0, 0,  //
                                                                                   0, 1, 0, 2, 0, 3,  //
                                                                                   0, 0, 0, 0, 0, 0,  //
                                                                                   3, 1, 2, 3, 1, 2})};
}

class MaskedLayer : public ::testing::TestWithParam<Form> {};

TEST_P(MaskedLayer, IsFusedAndAgreesWithItsLoopOnEveryCall) {
  const Form& form = GetParam();
  const std::string file = WriteMasked(form);
  const auto fused = ConvertMasked(file, converter::Composites::kFuse),
             loop = ConvertMasked(file, converter::Composites::kInline);
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  for (const SiteReport& site : fused->report.sites) {
    EXPECT_TRUE(site.fused) << site.why;
    EXPECT_THAT(site.verification, HasSubstr("agrees (f64"));
  }
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)[form.op], form.ops);
  EXPECT_EQ(OpsOf(**module)["WHILE"], 0);
  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (int call = 0; call < 3; ++call) {
    const auto x = Invoke(**a, {Ids()}), y = Invoke(**b, {Ids()});
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y, 1e-6, 1e-6), "") << "call " << call;
  }
}

const json kSequence = {{"return_sequences", true}};
const Form kForms[] = {
    {"lstm", "LSTM", json::object(), "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_sequence", "LSTM", kSequence, "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_zeros",
     "LSTM",
     {{"return_sequences", true}, {"zero_output_for_mask", true}},
     "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_backwards",
     "LSTM",
     {{"return_sequences", true}, {"go_backwards", true}},
     "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_stateful", "LSTM", {{"stateful", true}}, "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_stateful_backwards_relu",
     "LSTM",
     {{"return_sequences", true}, {"stateful", true}, {"go_backwards", true}, {"activation", "relu"}},
     "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"lstm_hard_sigmoid",
     "LSTM",
     {{"return_sequences", true}, {"recurrent_activation", "hard_sigmoid"}},
     "fusebox.lstm"},
    {"lstm_hard_sigmoid_last", "LSTM", {{"recurrent_activation", "hard_sigmoid"}}, "fusebox.lstm"},
    {"lstm_hard_sigmoid_stateful",
     "LSTM",
     {{"stateful", true}, {"recurrent_activation", "hard_sigmoid"}},
     "fusebox.lstm"},
    {"lstm_tanh_gates",
     "LSTM",
     {{"return_sequences", true}, {"recurrent_activation", "tanh"}},
     "fusebox.lstm"},
    {"gru", "GRU", json::object(), "fusebox.gru"},
    {"gru_sequence", "GRU", kSequence, "fusebox.gru"},
    {"gru_zeros_last", "GRU", {{"zero_output_for_mask", true}}, "fusebox.gru"},
    {"gru_stateful", "GRU", {{"return_sequences", true}, {"stateful", true}}, "fusebox.gru"},
    {"simple_rnn", "SimpleRNN", kSequence, "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_backwards", "SimpleRNN", {{"go_backwards", true}}, "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_stateful", "SimpleRNN", {{"stateful", true}}, "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"bidirectional_lstm", "Bidirectional LSTM", kSequence, "UNIDIRECTIONAL_SEQUENCE_LSTM", 2},
    {"bidirectional_gru_last", "Bidirectional GRU", json::object(), "fusebox.gru", 2},
};

INSTANTIATE_TEST_SUITE_P(All, MaskedLayer, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// The gates are shut behind the mask where the final c is read, which gates without bounds cannot be.
TEST(MaskedLayers, KeepTheirLoopWhereTheGatesCannotBeShut) {
  for (const char* gates : {"linear", "relu", "relu6", "tanh"}) {
    const Form form{"", "LSTM", {{"stateful", true}, {"recurrent_activation", gates}}, ""};
    const std::string file = WriteMasked(form);
    const auto made = ConvertMasked(file, converter::Composites::kFuse);
    ASSERT_OK(made);
    ASSERT_EQ(made->report.sites.size(), 1u);
    EXPECT_FALSE(made->report.sites[0].fused);
    EXPECT_THAT(made->report.sites[0].why, HasSubstr("as the final c of a masked layer requires"));
  }
}

TEST(MaskedLayers, GiveZerosWhereTheyAreAskedTo) {
  const Form form{"", "GRU", {{"return_sequences", true}, {"zero_output_for_mask", true}}, ""};
  const auto made = ConvertMasked(WriteMasked(form), converter::Composites::kFuse);
  ASSERT_OK(made);
  const auto session = Open(made->path, *Plugins());
  ASSERT_OK(session);
  const auto zeros = Invoke(**session, {Ids()});
  ASSERT_OK(zeros);
  const Tensor ids = Ids();
  const auto out = (*zeros)[0].data.As<float>();
  for (size_t step = 0; step < kRows * kSteps; ++step)
    for (size_t unit = 0; unit < kUnits; ++unit)
      EXPECT_EQ(out[step * kUnits + unit] == 0, ids.data.As<int32_t>()[step] == 0) << step;
}

}  // namespace
}  // namespace fusebox::testing
