// SPDX-License-Identifier: Apache-2.0
// Masked recurrent layers of SavedModels: as Keras 2 writes them, with the mask as an argument of the
// function that says what it implements; the same without that name; and as Keras 3 writes them. Padding at
// the end, at the start and in the middle, and nothing but padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "converter/import/saved_model/parse_message.h"
#include "converter/import/saved_model/saved_model.pb.h"
#include "host/tflite/tflite.h"
#include "samples/models/masked.h"
#include "tests/converter/import/files.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using samples::Keras3RnnOptions;
using samples::Masks;
using samples::RecurrentOptions;
using ::testing::HasSubstr;
using Cell = RecurrentOptions::Cell;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr int kRows = 4, kSteps = 5, kInputs = 3;

Result<Written> ConvertLayer(const std::string& dir, converter::Composites composites,
                             const std::vector<std::string>& plugins = {"fusebox.rnn"}) {
  converter::Options options;
  options.signatures = {"serving_default"};
  FUSEBOX_ASSIGN(options.registry, Plugins(plugins));
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return Convert(dir, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

// [rows, steps, inputs], or steps first.
Tensor Padded(int rows = kRows, bool time_major = false) {
  constexpr bool kCounts[kRows][kSteps] = {{true, true, true, false, false},
                                           {false, true, false, true, true},
                                           {false, false, false, false, false},
                                           {true, true, true, true, true}};
  Tensor x =
      Random({DType::kF32, time_major ? Shape{kSteps, rows, kInputs} : Shape{rows, kSteps, kInputs}}, 5);
  std::vector<float> values(x.data.As<float>().begin(), x.data.As<float>().end());
  for (int row = 0; row < rows; ++row)
    for (int step = 0; step < kSteps; ++step)
      if (!kCounts[row][step])
        std::fill_n(values.begin() + (time_major ? step * rows + row : row * kSteps + step) * kInputs,
                    kInputs, 0.0f);
  x.data = Buffer::Of<float>(values);
  return x;
}

std::string Notes(const converter::Report& report) {
  std::string all;
  for (const std::string& note : report.notes) all += note + "\n";
  return all;
}

void ExpectOneFusedOpThatAgreesWithItsLoop(const std::string& dir, const std::string& op,
                                           bool time_major = false) {
  const auto fused = ConvertLayer(dir, converter::Composites::kFuse),
             loop = ConvertLayer(dir, converter::Composites::kInline);
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  ASSERT_EQ(fused->report.sites.size(), 1u) << Notes(fused->report);
  const SiteReport& site = fused->report.sites[0];
  EXPECT_TRUE(site.fused) << site.why << "\n" << Notes(fused->report);
  EXPECT_THAT(site.verification, HasSubstr("agrees (f64"));
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)[op], 1);
  EXPECT_EQ(OpsOf(**module)["WHILE"], 0);
  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (int call = 0; call < 3; ++call) {
    const Tensor in = Padded(kRows, time_major);
    const auto x = Invoke(**a, {in}), y = Invoke(**b, {in});
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y, 1e-6, 1e-6), "") << "call " << call;
  }
}

// Takes the names away that say what the functions implement.
void Unname(const std::string& dir) {
  const std::string file = dir + "/saved_model.pb", bytes = ReadAll(file);
  tf::SavedModel model;
  ASSERT_TRUE(saved_model::ParseMessage(std::as_bytes(std::span(bytes)), model));
  for (tf::FunctionDef& f :
       *model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library()->mutable_function())
    for (const char* name : {"api_implements", "_implements"}) f.mutable_attr()->erase(name);
  WriteAll(file, model.SerializeAsString());
}

struct Form {
  const char* name;
  RecurrentOptions options;
  Masks masks;
  const char* op;
};

constexpr char kLstm[] = "UNIDIRECTIONAL_SEQUENCE_LSTM", kGru[] = "fusebox.gru",
               kSimple[] = "UNIDIRECTIONAL_SEQUENCE_RNN";
constexpr Masks kHold = Masks::kHold, kZeros = Masks::kZeros;
const Form kForms[] = {
    {"lstm", {.cell = Cell::kLstm}, kHold, kLstm},
    {"lstm_sequences", {.cell = Cell::kLstm, .return_sequences = true}, kHold, kLstm},
    {"lstm_zeros", {.cell = Cell::kLstm, .return_sequences = true}, kZeros, kLstm},
    {"lstm_zeros_last", {.cell = Cell::kLstm}, kZeros, kLstm},
    {"lstm_kept_last", {.cell = Cell::kLstm, .last_step_only = true}, kHold, kLstm},
    {"lstm_backwards", {.cell = Cell::kLstm, .go_backwards = true, .return_sequences = true}, kHold, kLstm},
    {"lstm_any_length", {.cell = Cell::kLstm, .steps = -1, .return_sequences = true}, kHold, kLstm},
    {"lstm_fixed_batch", {.cell = Cell::kLstm, .batch = kRows, .return_sequences = true}, kZeros, kLstm},
    {"lstm_time_major", {.cell = Cell::kLstm, .time_major = true, .return_sequences = true}, kHold, kLstm},
    {"lstm_time_major_zeros_backwards_any_length",
     {.cell = Cell::kLstm, .steps = -1, .time_major = true, .go_backwards = true, .return_sequences = true},
     kZeros,
     kLstm},
    {"lstm_time_major_states", {.cell = Cell::kLstm, .time_major = true, .return_state = true}, kHold, kLstm},
    {"gru_time_major_states", {.cell = Cell::kGru, .time_major = true, .return_state = true}, kZeros, kGru},
    {"simple_rnn_time_major",
     {.cell = Cell::kSimpleRnn, .time_major = true, .go_backwards = true, .return_sequences = true},
     kHold,
     kSimple},
    {"gru", {.cell = Cell::kGru, .return_state = true}, kHold, kGru},
    {"gru_zeros_backwards",
     {.cell = Cell::kGru, .go_backwards = true, .return_sequences = true},
     kZeros,
     kGru},
    {"gru_reset_before", {.cell = Cell::kGruResetBefore, .return_sequences = true}, kHold, kGru},
    {"simple_rnn",
     {.cell = Cell::kSimpleRnn, .return_sequences = true, .return_state = true},
     kHold,
     kSimple},
};

class MaskedFunction : public ::testing::TestWithParam<Form> {};

TEST_P(MaskedFunction, IsOneFusedOpThatAgreesWithItsLoop) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteMaskedRecurrent(dir, 3, GetParam().options, GetParam().masks));
  ExpectOneFusedOpThatAgreesWithItsLoop(dir, GetParam().op, GetParam().options.time_major);
}

TEST_P(MaskedFunction, WithoutItsNameIsOneFusedOpThatAgreesWithItsLoop) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteMaskedRecurrent(dir, 3, GetParam().options, GetParam().masks));
  Unname(dir);
  ExpectOneFusedOpThatAgreesWithItsLoop(dir, GetParam().op, GetParam().options.time_major);
}

// Without a rule the loop stays, and what it gave before is carried by nobody where zeros are given for
// masked steps: the batch of what it writes comes from its input and states.
TEST_P(MaskedFunction, KeepsItsLoopForAnyBatch) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteMaskedRecurrent(dir, 3, GetParam().options, GetParam().masks));
  const auto fused = ConvertLayer(dir, converter::Composites::kFuse);
  ASSERT_OK(fused);
  for (const bool named : {true, false}) {
    if (!named) Unname(dir);
    const auto loop = ConvertLayer(dir, converter::Composites::kFuse, {});
    ASSERT_OK(loop);
    auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins());
    ASSERT_OK(a);
    ASSERT_OK(b);
    for (const int rows : {kRows, 1, 2}) {
      if (GetParam().options.batch > 0 && rows != kRows) continue;
      const Tensor x = Padded(rows, GetParam().options.time_major);
      const auto fused_gives = Invoke(**a, {x}), loop_gives = Invoke(**b, {x});
      ASSERT_OK(fused_gives);
      ASSERT_OK(loop_gives);
      EXPECT_EQ(Difference(*fused_gives, *loop_gives, 1e-6, 1e-6), "") << rows << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MaskedFunction, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// The op for both directions knows no mask.
TEST(MaskedBidirectional, IsTwoFusedOpsThatAgreeWithTheirLoops) {
  for (const bool kept_last : {true, false}) {
    const std::string dir = TestDir() + "/model";
    ASSERT_OK(samples::WriteMaskedRecurrent(dir, 3,
                                            {.cell = Cell::kLstm,
                                             .return_sequences = !kept_last,
                                             .last_step_only = kept_last,
                                             .merge = RecurrentOptions::Merge::kConcat},
                                            kept_last ? kHold : kZeros));
    const auto fused = ConvertLayer(dir, converter::Composites::kFuse),
               loop = ConvertLayer(dir, converter::Composites::kInline);
    ASSERT_OK(fused);
    ASSERT_OK(loop);
    ASSERT_EQ(fused->report.sites.size(), 2u);
    for (const SiteReport& site : fused->report.sites)
      EXPECT_THAT(site.verification, HasSubstr("agrees (f64")) << site.why;
    auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins());
    ASSERT_OK(a);
    ASSERT_OK(b);
    const auto x = Invoke(**a, {Padded(kRows, false)}), y = Invoke(**b, {Padded(kRows, false)});
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y, 1e-6, 1e-6), "");
  }
}

class MaskedKeras3 : public ::testing::TestWithParam<std::pair<Keras3RnnOptions, const char*>> {};

TEST_P(MaskedKeras3, IsOneFusedOpThatAgreesWithItsLoop) {
  Keras3RnnOptions options = GetParam().first;
  options.mask = true;
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteKeras3Rnn(dir, 3, options));
  ExpectOneFusedOpThatAgreesWithItsLoop(dir, GetParam().second);
}

using Layer = Keras3RnnOptions::Layer;
INSTANTIATE_TEST_SUITE_P(
    All, MaskedKeras3,
    ::testing::Values(std::pair(Keras3RnnOptions{.return_sequences = true}, kLstm),
                      std::pair(Keras3RnnOptions{.go_backwards = true}, kLstm),
                      std::pair(Keras3RnnOptions{.layer = Layer::kGru, .return_sequences = true}, kGru),
                      std::pair(Keras3RnnOptions{.layer = Layer::kSimpleRnn, .return_state = true},
                                kSimple)));

}  // namespace
}  // namespace fusebox::testing
