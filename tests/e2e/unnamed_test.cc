// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as Keras 2 writes them, but without the attribute that names them (layers of models that
// were saved by other tools, or whose activations Keras gives no name to): found by what their loops compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "converter/import/saved_model/parse_message.h"
#include "converter/import/saved_model/saved_model.pb.h"
#include "samples/models/models.h"
#include "tests/converter/import/files.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using samples::RecurrentOptions;
using ::testing::HasSubstr;
using Cell = RecurrentOptions::Cell;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Case {
  const char* name;
  const char* composite;  // that the loop becomes
  RecurrentOptions layer;
};

// The model with the names gone.
std::string WriteUnnamed(const RecurrentOptions& layer) {
  const std::string dir = TestDir() + "/model", file = dir + "/saved_model.pb";
  const Status written = samples::WriteRecurrent(dir, 3, layer);
  EXPECT_TRUE(written) << written.error().message;
  tf::SavedModel model;
  const std::string bytes = ReadAll(file);
  EXPECT_TRUE(saved_model::ParseMessage(std::as_bytes(std::span(bytes)), model));
  int named = 0;
  for (tf::FunctionDef& f :
       *model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library()->mutable_function())
    named += static_cast<int>(f.mutable_attr()->erase("api_implements"));
  EXPECT_EQ(named > 0, layer.cell == Cell::kLstm || layer.cell == Cell::kGru);  // others have no name anyway
  WriteAll(file, model.SerializeAsString());
  return dir;
}

Result<Written> ConvertLayer(const std::string& dir, converter::Composites composites) {
  converter::Options options;
  options.registry = *Plugins();
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return Convert(dir, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

// Two calls; unknown dimensions are two sequences of five steps.
Result<Tensors> Call(const std::string& path) {
  FUSEBOX_ASSIGN(const auto session, Open(path, *Plugins()));
  Tensors inputs;
  for (size_t i = 0; i < session->inputs().size(); ++i) {
    Type type = session->inputs()[i].type;
    for (int d = 0; d < type.shape.rank(); ++d)
      if (type.shape[d] < 0) type.shape.dims()[static_cast<size_t>(d)] = d == 0 ? 2 : 5;
    inputs.push_back(Random(type, 11 + i));
  }
  FUSEBOX_TRY(Invoke(*session, inputs));
  return Invoke(*session, inputs);
}

class UnnamedKeras2 : public ::testing::TestWithParam<Case> {};

TEST_P(UnnamedKeras2, IsOneFusedOpThatAgreesWithItsLoop) {
  const Case& c = GetParam();
  const std::string dir = WriteUnnamed(c.layer);
  const auto loop = ConvertLayer(dir, converter::Composites::kInline);
  ASSERT_OK(loop);
  const auto fused = ConvertLayer(dir, converter::Composites::kFuse);
  ASSERT_OK(fused);
  std::string notes;
  for (const std::string& note : fused->report.notes) notes += note + "\n";
  ASSERT_EQ(fused->report.sites.size(), 1u) << notes;
  EXPECT_EQ(fused->report.sites[0].composite, c.composite);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees (f64"));
  const auto a = Call(fused->path), b = Call(loop->path);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(Difference(*a, *b, 1e-6, 1e-6), "");
}

constexpr char kLstm[] = "keras.lstm", kGru[] = "keras.gru", kSimple[] = "keras.simple_rnn";

INSTANTIATE_TEST_SUITE_P(
    All, UnnamedKeras2,
    ::testing::Values(
        Case{"Lstm", kLstm, {.cell = Cell::kLstm}},
        Case{"LstmSequences", kLstm, {.cell = Cell::kLstm, .return_sequences = true}},
        Case{"LstmTimeMajor", kLstm, {.cell = Cell::kLstm, .time_major = true, .return_sequences = true}},
        Case{"LstmTimeMajorStates",
             kLstm,
             {.cell = Cell::kLstm, .batch = 2, .time_major = true, .return_state = true}},
        Case{"LstmBackwards", kLstm, {.cell = Cell::kLstm, .go_backwards = true, .return_sequences = true}},
        Case{"LstmTimeMajorBackwards",
             kLstm,
             {.cell = Cell::kLstm, .time_major = true, .go_backwards = true, .return_sequences = true}},
        Case{"LstmOpenLength", kLstm, {.cell = Cell::kLstm, .steps = -1, .return_sequences = true}},
        Case{"LstmLastStepOnly", kLstm, {.cell = Cell::kLstm, .last_step_only = true}},
        Case{"LstmStatesGiven", kLstm, {.cell = Cell::kLstm, .return_state = true, .input_state = true}},
        Case{"LstmWithoutBias", kLstm, {.cell = Cell::kLstm, .bias = false}},
        Case{"Gru", kGru, {.cell = Cell::kGru, .return_sequences = true, .return_state = true}},
        Case{"GruTimeMajor", kGru, {.cell = Cell::kGru, .time_major = true, .return_sequences = true}},
        Case{"GruWithoutBias", kGru, {.cell = Cell::kGru, .bias = false}},
        Case{"GruResetBefore", kGru, {.cell = Cell::kGruResetBefore, .return_sequences = true}},
        Case{"GruResetBeforeTimeMajor", kGru, {.cell = Cell::kGruResetBefore, .time_major = true}},
        Case{"SimpleRnn", kSimple, {.cell = Cell::kSimpleRnn, .return_sequences = true}},
        Case{"SimpleRnnTimeMajorBackwards",
             kSimple,
             {.cell = Cell::kSimpleRnn, .time_major = true, .go_backwards = true, .return_sequences = true}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
