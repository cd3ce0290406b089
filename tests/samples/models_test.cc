// SPDX-License-Identifier: Apache-2.0
#include "samples/models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/variables.h"
#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/testing/models/models.h"

namespace fusebox::samples {
namespace {

using fusebox::testing::FreshDir;
using fusebox::testing::ReadAll;
using saved_model::LoadSavedModel;
using saved_model::Variables;

std::string ValueOf(const std::string& dir, const std::string& node) {
  auto model = LoadSavedModel(dir);
  EXPECT_TRUE(model);
  auto variables = Variables::Bind(*model);
  EXPECT_TRUE(variables);
  auto bytes = variables->Read(*variables->OfNode(node));
  EXPECT_TRUE(bytes);
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

const tf::FunctionDef* FunctionWith(const saved_model::SavedModel& model, const std::string& attr) {
  for (const tf::FunctionDef& function : model.graph().library().function()) {
    if (function.attr().contains(attr)) return &function;
  }
  return nullptr;
}

TEST(SampleModels, AreTheSameBytesForTheSameSeed) {
  for (const SampleModel& sample : test_models::NamedModels()) {
    std::string dir = FreshDir();
    ASSERT_TRUE(sample.write(dir + "/a", 7));
    ASSERT_TRUE(sample.write(dir + "/b", 7));
    ASSERT_TRUE(sample.write(dir + "/c", 8));
    for (const char* file :
         {"/saved_model.pb", "/variables/variables.index", "/variables/variables.data-00000-of-00001"}) {
      EXPECT_EQ(ReadAll(dir + "/a" + file), ReadAll(dir + "/b" + file)) << sample.name << file;
    }
    EXPECT_NE(ReadAll(dir + "/a/variables/variables.data-00000-of-00001"),
              ReadAll(dir + "/c/variables/variables.data-00000-of-00001"))
        << sample.name;
  }
}

TEST(SampleModels, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const SampleModel& sample : test_models::NamedModels())
    EXPECT_TRUE(names.insert(sample.name).second) << sample.name;
  EXPECT_EQ(FindSampleModel("keras_lstm")->name, "keras_lstm");
  EXPECT_EQ(FindSampleModel("no_such"), nullptr);
}

// Every input of every node is an argument, or an output that its node has by the table of ops.
TEST(SampleModels, HaveNoDanglingEdges) {
  for (const SampleModel& sample : test_models::NamedModels()) {
    std::string dir = FreshDir();
    ASSERT_TRUE(sample.write(dir, 1));
    auto model = LoadSavedModel(dir);
    ASSERT_TRUE(model) << model.error().message;
    for (const tf::FunctionDef& function : model->graph().library().function()) {
      std::set<std::string> known;
      for (const tf::OpDef::Arg& arg : function.signature().input_arg()) known.insert(arg.name());
      auto check = [&](const std::string& edge) {
        EXPECT_TRUE(known.contains(edge.substr(0, edge.rfind(':'))))
            << sample.name << " " << function.signature().name() << " " << edge;
      };
      for (const tf::NodeDef& node : function.node_def()) {
        for (const std::string& input : node.input()) check(input);
        known.insert("^" + node.name());
        for (const tf::OpDef::Arg& arg : models::OpDefOf(node.op()).output_arg())
          known.insert(node.name() + ":" + arg.name());
      }
      EXPECT_EQ(function.ret_size(), function.signature().output_arg_size());
      for (const auto& [name, edge] : function.ret()) check(edge);
    }
  }
}

TEST(LstmModel, HasTheInterfaceOfKeras) {
  std::string dir = FreshDir();
  ASSERT_TRUE(WriteLstm(dir, 1, {.time_major = true, .go_backwards = true}));
  auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model);
  const tf::FunctionDef* lstm = FunctionWith(*model, "api_implements");
  ASSERT_TRUE(lstm);
  EXPECT_EQ(lstm->attr().at("api_implements").s().substr(0, 5), "lstm_");
  EXPECT_TRUE(lstm->attr().at("time_major").b());
  EXPECT_TRUE(lstm->attr().at("go_backwards").b());
  EXPECT_EQ(lstm->signature().input_arg_size(), 6);
  EXPECT_EQ(lstm->signature().output_arg_size(), 5);
}

TEST(LstmModel, HasTheSameWeightsForAnyNumberOfSteps) {
  std::string dir = FreshDir();
  LstmOptions one = {.batch = 1, .steps = 1, .initial_state = LstmOptions::State::kInput};
  LstmOptions twenty = {.batch = 1, .steps = 20, .return_sequences = true};
  ASSERT_TRUE(WriteLstm(dir + "/one", 3, one));
  ASSERT_TRUE(WriteLstm(dir + "/twenty", 3, twenty));
  for (const char* name : {"kernel", "recurrent_kernel", "bias"}) {
    std::string node = std::string("lstm/lstm_cell/") + name;
    EXPECT_EQ(ValueOf(dir + "/one", node), ValueOf(dir + "/twenty", node)) << name;
  }
}

TEST(LstmModel, RefusesOptionsThatContradictEachOther) {
  std::string dir = FreshDir();
  EXPECT_FALSE(WriteLstm(dir, 1, {.initial_state = LstmOptions::State::kConstant}));
  EXPECT_FALSE(WriteLstm(dir, 1, {.return_sequences = true, .last_step_only = true}));
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

TEST(CustomFusedModel, CarriesItsNameAndOptions) {
  std::string dir = FreshDir();
  ASSERT_TRUE(WriteCustomFused(dir, 1, {.example_option = 11}));
  auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model);
  const tf::NameAttrList& name = FunctionWith(*model, "_implements")->attr().at("_implements").func();
  EXPECT_EQ(name.name(), "my_custom_fused_op");
  EXPECT_TRUE(name.attr().at("tfl_fusable_op").b());
  EXPECT_EQ(name.attr().at("example_option").i(), 11);
}

TEST(Random, IsTheSameEverywhere) {
  models::Random random(1);
  float first = random.Uniform(0, 1), second = random.Uniform(0, 1);
  EXPECT_EQ(first, 0x910a2d * 0x1p-24f);  // SplitMix64's published numbers for seed 1
  EXPECT_EQ(second, 0xbeeb8d * 0x1p-24f);
}

}  // namespace
}  // namespace fusebox::samples
