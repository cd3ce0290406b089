// SPDX-License-Identifier: Apache-2.0
// Keras' recurrent layers of the project's own, in every form: fused by the rnn plugin, verified strictly,
// the same as their loops on every call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using samples::RecurrentOptions;
using Cell = RecurrentOptions::Cell;
using Merge = RecurrentOptions::Merge;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Form {
  const char* name;
  RecurrentOptions options;
  const char* op;
};

constexpr char kBidirectional[] = "BIDIRECTIONAL_SEQUENCE_LSTM";
const Form kForms[] = {
    {"gru", {.return_sequences = true, .return_state = true}, "fusebox.gru"},
    {"gru_last", {}, "fusebox.gru"},
    {"gru_kept_last", {.last_step_only = true}, "fusebox.gru"},
    {"gru_time_major", {.time_major = true, .return_sequences = true}, "fusebox.gru"},
    {"gru_backwards", {.go_backwards = true, .return_sequences = true}, "fusebox.gru"},
    {"gru_any_length", {.steps = -1, .return_sequences = true}, "fusebox.gru"},
    {"gru_input_state", {.batch = 2, .return_state = true, .input_state = true}, "fusebox.gru"},
    {"gru_without_bias", {.bias = false}, "fusebox.gru"},
    {"gru_relu",
     {.return_sequences = true, .activation = RecurrentOptions::Activation::kRelu},
     "fusebox.gru"},
    {"gru_other_body", {.return_sequences = true, .other_body = true}, "fusebox.gru"},
    {"gru_reset_before", {.cell = Cell::kGruResetBefore, .return_sequences = true}, "fusebox.gru"},
    {"gru_reset_before_other",
     {.cell = Cell::kGruResetBefore, .return_sequences = true, .other_body = true},
     "fusebox.gru"},
    {"gru_reset_before_without_bias", {.cell = Cell::kGruResetBefore, .bias = false}, "fusebox.gru"},
    {"simple_rnn",
     {.cell = Cell::kSimpleRnn, .return_sequences = true, .return_state = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_last", {.cell = Cell::kSimpleRnn}, "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_kept_last",
     {.cell = Cell::kSimpleRnn, .last_step_only = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_time_major",
     {.cell = Cell::kSimpleRnn, .time_major = true, .return_sequences = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_backwards",
     {.cell = Cell::kSimpleRnn, .go_backwards = true, .return_sequences = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_input_state",
     {.cell = Cell::kSimpleRnn, .batch = 2, .return_state = true, .input_state = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_relu",
     {.cell = Cell::kSimpleRnn, .activation = RecurrentOptions::Activation::kRelu},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_linear",
     {.cell = Cell::kSimpleRnn, .activation = RecurrentOptions::Activation::kLinear},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"simple_rnn_other_body",
     {.cell = Cell::kSimpleRnn, .return_sequences = true, .other_body = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"bidirectional_concat",
     {.cell = Cell::kLstm, .return_sequences = true, .return_state = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_time_major",
     {.cell = Cell::kLstm, .time_major = true, .return_sequences = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_last", {.cell = Cell::kLstm, .merge = Merge::kConcat}, kBidirectional},
    {"bidirectional_sum",
     {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kSum},
     kBidirectional},
    {"bidirectional_mul_last", {.cell = Cell::kLstm, .merge = Merge::kMul}, kBidirectional},
    {"bidirectional_average",
     {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kAverage},
     kBidirectional},
    {"bidirectional_mul",
     {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kMul},
     kBidirectional},
    {"bidirectional_sum_last", {.cell = Cell::kLstm, .merge = Merge::kSum}, kBidirectional},
    {"bidirectional_average_last", {.cell = Cell::kLstm, .merge = Merge::kAverage}, kBidirectional},
    {"bidirectional_separate_last", {.cell = Cell::kLstm, .merge = Merge::kSeparate}, kBidirectional},
    {"bidirectional_separate",
     {.cell = Cell::kLstm, .steps = -1, .return_sequences = true, .merge = Merge::kSeparate},
     kBidirectional},
    {"bidirectional_input_states",
     {.cell = Cell::kLstm,
      .batch = 2,
      .return_sequences = true,
      .return_state = true,
      .input_state = true,
      .merge = Merge::kConcat},
     kBidirectional},
    // As newer Keras writes layers that return no sequences: their loops keep one step.
    {"bidirectional_kept_last",
     {.cell = Cell::kLstm, .last_step_only = true, .return_state = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_fixed_batch",
     {.cell = Cell::kLstm, .batch = 2, .last_step_only = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_single",
     {.cell = Cell::kLstm, .batch = 1, .last_step_only = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_time_major",
     {.cell = Cell::kLstm,
      .time_major = true,
      .last_step_only = true,
      .return_state = true,
      .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_any_length",
     {.cell = Cell::kLstm, .steps = -1, .last_step_only = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_sum",
     {.cell = Cell::kLstm, .last_step_only = true, .merge = Merge::kSum},
     kBidirectional},
    {"bidirectional_kept_last_mul",
     {.cell = Cell::kLstm, .last_step_only = true, .merge = Merge::kMul},
     kBidirectional},
    {"bidirectional_kept_last_average",
     {.cell = Cell::kLstm, .last_step_only = true, .merge = Merge::kAverage},
     kBidirectional},
    {"bidirectional_kept_last_separate",
     {.cell = Cell::kLstm, .last_step_only = true, .return_state = true, .merge = Merge::kSeparate},
     kBidirectional},
    {"bidirectional_kept_last_read",
     {.cell = Cell::kLstm, .return_sequences = true, .last_step_only = true, .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_kept_last_read_time_major",
     {.cell = Cell::kLstm,
      .time_major = true,
      .return_sequences = true,
      .last_step_only = true,
      .merge = Merge::kSeparate},
     kBidirectional},
    {"bidirectional_kept_last_input_states",
     {.cell = Cell::kLstm,
      .batch = 2,
      .last_step_only = true,
      .return_state = true,
      .input_state = true,
      .merge = Merge::kConcat},
     kBidirectional},
    {"bidirectional_other_body",
     {.cell = Cell::kLstm, .return_sequences = true, .other_body = true, .merge = Merge::kConcat},
     kBidirectional},
};

class RecurrentLayer : public ::testing::TestWithParam<Form> {
 protected:
  converter::Options OptionsFor(const std::vector<std::string>& plugins) const {
    converter::Options options;
    options.registry = *Plugins(plugins);
    return options;
  }
};

TEST_P(RecurrentLayer, IsOneFusedOpThatAgreesWithItsLoop) {
  const Form& form = GetParam();
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteRecurrent(dir, 1, form.options));
  auto options = OptionsFor({"fusebox.rnn"});
  options.verify = converter::Verification::kStrict;
  const auto fused = Convert(dir, options, "fused");
  ASSERT_OK(fused);
  EXPECT_FALSE(fused->report.verification_failed);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees (f64"));
  const auto loop = Convert(dir, OptionsFor({}), "loop");
  ASSERT_OK(loop);

  const auto module = tflite::ReadFile(fused->path), loop_module = tflite::ReadFile(loop->path);
  ASSERT_OK(module);
  ASSERT_OK(loop_module);
  EXPECT_EQ(OpsOf(**module)[form.op], 1);
  EXPECT_THAT(OpsOf(**loop_module), Contains(Key("WHILE")));
  EXPECT_THAT(UnusedConstants(**module), IsEmpty());

  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins({}));
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Tensors inputs = RandomInputs(**a, seed);
    const Shape& declared = (*a)->inputs()[0].type.shape;
    const int64_t batch = form.options.batch < 0 ? 2 : form.options.batch;
    const Shape shape = form.options.time_major ? Shape{5, batch, 3} : Shape{batch, 5, 3};
    if (!declared.is_static()) inputs[0] = Random({DType::kF32, shape}, seed);
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y), "") << "seed " << seed;
    const auto again = Invoke(**a, inputs);
    ASSERT_OK(again);
    EXPECT_EQ(Difference(*again, *x, 0, 0), "") << "a second run of seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentLayer, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Gru, IsNearItsFloatFormWithWeightsOf8Bits) {
  for (const Cell cell : {Cell::kGru, Cell::kGruResetBefore}) {
    const RecurrentOptions layer = {
        .cell = cell, .batch = 2, .inputs = 48, .units = 40, .return_sequences = true, .return_state = true};
    ASSERT_OK(samples::WriteRecurrent(TestDir() + "/model", 1, layer));
    converter::Options options;
    options.registry = *Plugins();
    const auto floats = Convert(TestDir() + "/model", options, "floats");
    options.quantization = converter::Quantization::kDynamic;
    const auto bytes = Convert(TestDir() + "/model", options, "bytes");
    ASSERT_OK(floats);
    ASSERT_OK(bytes);
    const auto module = tflite::ReadFile(bytes->path);
    ASSERT_OK(module);
    int stored = 0;
    const Function& f = *(*module)->functions[0];
    for (const auto& node : f.nodes) {
      if (node->name != "fusebox.gru") continue;
      for (const size_t i : {2, 3}) stored += f.value(node->operands[i]).type.dtype == DType::kI8;
      EXPECT_TRUE(node->attrs.b("asymmetric_quantize_inputs", false));
    }
    EXPECT_EQ(stored, 2);
    auto a = Open(floats->path, *Plugins()), b = Open(bytes->path, *Plugins());
    ASSERT_OK(a);
    ASSERT_OK(b);
    const Tensors inputs = RandomInputs(**a, 1);
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*y, *x, 0.02, 0), "");
    EXPECT_NE(Difference(*y, *x, 1e-6, 0), "");
  }
}

TEST(Gru, StaysALoopOfBuiltinOpsWhereThatIsAskedFor) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteRecurrent(dir, 1, {}));
  Config config = PluginConfig();
  config.options["fusebox.rnn"].Set("gru", std::string("builtin"));
  converter::Options options;
  options.registry = *Registry::Create(config);
  const auto written = Convert(dir, options, "builtin");
  ASSERT_OK(written);
  ASSERT_EQ(written->report.sites.size(), 1u);
  EXPECT_THAT(written->report.sites[0].why, HasSubstr("allows builtin ops only"));
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_THAT(OpsOf(**module), Contains(Key("WHILE")));
  EXPECT_THAT(OpsOf(**module), Not(Contains(Key("fusebox.gru"))));
}

// Calls of a session with other inputs each, then a reset and the same again: what all outputs were.
Result<std::vector<Tensors>> CallsAndReset(Session& session) {
  std::vector<Tensors> all;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t call = 1; call <= 4; ++call) {
      FUSEBOX_ASSIGN(Tensors outputs, Invoke(session, RandomInputs(session, call)));
      all.push_back(std::move(outputs));
    }
    session.ResetState();
  }
  return all;
}

struct Stateful {
  const char* name;
  RecurrentOptions options;
  const char* op;
  int variables;  // resource variables that stay
};

class StatefulLayer : public ::testing::TestWithParam<Stateful> {};

TEST_P(StatefulLayer, KeepsItsStateFromCallToCallAndResetsIt) {
  const Stateful& form = GetParam();
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteRecurrent(dir, 1, form.options));
  converter::Options with, without;
  with.registry = *Plugins();
  with.verify = converter::Verification::kStrict;
  without.registry = *Plugins({});
  const auto fused = Convert(dir, with, "fused"), loop = Convert(dir, without, "loop");
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)[form.op], 1);
  EXPECT_EQ(OpsOf(**module)["READ_VARIABLE"], form.variables);
  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins({}));
  ASSERT_OK(a);
  ASSERT_OK(b);
  const auto x = CallsAndReset(**a), y = CallsAndReset(**b);
  ASSERT_OK(x);
  ASSERT_OK(y);
  for (size_t i = 0; i < x->size(); ++i) EXPECT_EQ(Difference((*x)[i], (*y)[i]), "") << "call " << i;
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(Difference((*x)[i + 4], (*x)[i], 0, 0), "") << "call " << i << " after the reset";
  // The state matters: the same input gives something else when it comes first.
  auto fresh = Open(fused->path, *Plugins());
  ASSERT_OK(fresh);
  const auto first = Invoke(**fresh, RandomInputs(**fresh, 4));
  ASSERT_OK(first);
  EXPECT_NE(Difference(*first, (*x)[3]), "");
}

const Stateful kStateful[] = {
    {"lstm", {.cell = Cell::kLstm, .batch = 1, .stateful = true}, "UNIDIRECTIONAL_SEQUENCE_LSTM", 0},
    {"lstm_of_two_rows",
     {.cell = Cell::kLstm, .batch = 2, .return_sequences = true, .return_state = true, .stateful = true},
     "UNIDIRECTIONAL_SEQUENCE_LSTM",
     0},
    {"lstm_other_start",
     {.cell = Cell::kLstm, .batch = 1, .stateful = true, .zero_states = false},
     "UNIDIRECTIONAL_SEQUENCE_LSTM",
     2},
    {"simple_rnn",
     {.cell = Cell::kSimpleRnn, .batch = 1, .stateful = true},
     "UNIDIRECTIONAL_SEQUENCE_RNN",
     0},
    {"gru", {.batch = 1, .stateful = true}, "fusebox.gru", 1},
    {"gru_other_start", {.batch = 1, .stateful = true, .zero_states = false}, "fusebox.gru", 1},
    {"bidirectional",
     {.cell = Cell::kLstm, .batch = 1, .return_sequences = true, .stateful = true, .merge = Merge::kConcat},
     kBidirectional,
     0},
    {"bidirectional_kept_last",
     {.cell = Cell::kLstm, .batch = 1, .last_step_only = true, .stateful = true, .merge = Merge::kConcat},
     kBidirectional,
     0},
};

INSTANTIATE_TEST_SUITE_P(All, StatefulLayer, ::testing::ValuesIn(kStateful),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
