// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/variables.h"
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"
#include "tests/converter/import/files.h"
#include "tests/testing/refusal.h"

namespace fusebox::saved_model {
namespace {

using fusebox::testing::FreshDir;
using fusebox::testing::ReadAll;
using fusebox::testing::WriteAll;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoadSavedModel, FindsEverythingByName) {
  std::string dir = FreshDir();
  ASSERT_TRUE(samples::WriteCounter(dir, 1));
  auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(model->Signatures(), ElementsAre("peek", "serving_default"));
  EXPECT_TRUE(model->FindSignature("__saved_model_init_op"));
  EXPECT_TRUE(model->has_objects());
  EXPECT_TRUE(model->FindNode("counter"));
  EXPECT_EQ(model->FindOp("Mul")->output_arg(0).name(), "z");
  EXPECT_FALSE(model->FindFunction("no_such"));
  EXPECT_TRUE(model->FindFunction(model->FindNode("StatefulPartitionedCall")->attr().at("f").func().name()));
  EXPECT_EQ(model->tensorflow_version, "2.8.4");
  EXPECT_TRUE(model->warnings.empty());
}

TEST(LoadSavedModel, OutlivesItsCopies) {
  std::string dir = FreshDir();
  ASSERT_TRUE(samples::WriteCounter(dir, 1));
  SavedModel copy;
  {
    auto model = LoadSavedModel(dir);
    ASSERT_TRUE(model);
    copy = *model;
  }
  EXPECT_EQ(copy.FindNode("counter")->op(), "VarHandleOp");
}

TEST(LoadSavedModel, SaysWhatLiesThereInstead) {
  std::string dir = FreshDir();
  EXPECT_THAT(LoadSavedModel(dir + "/none").error().message, HasSubstr("no such folder"));
  EXPECT_THAT(LoadSavedModel(dir).error().message, HasSubstr("no saved_model.pb"));
  WriteAll(dir + "/saved_model.cpb", "x");
  EXPECT_THAT(LoadSavedModel(dir).error().message, AllOf(HasSubstr("saved_model.cpb"), HasSubstr("chunked")));
  WriteAll(dir + "/saved_model.pbtxt", "x");
  EXPECT_THAT(LoadSavedModel(dir).error().message, AllOf(HasSubstr("saved_model.pbtxt"), HasSubstr("text")));
  EXPECT_EQ(LoadSavedModel(dir).error().code, Code::kUnsupported);
  EXPECT_THAT(LoadSavedModel(dir + "/saved_model.cpb").error().message, HasSubstr("not a SavedModel folder"));
  WriteAll(dir + "/saved_model.pb", "");
  EXPECT_THAT(LoadSavedModel(dir).error().message, HasSubstr("empty"));
  WriteAll(dir + "/saved_model.pb", "this is no message");
  EXPECT_THAT(LoadSavedModel(dir).error().message, HasSubstr("damaged"));
}

TEST(LoadSavedModel, PicksTheServingGraphAndListsTheOthers) {
  std::string dir = FreshDir();
  tf::SavedModel file;
  file.set_saved_model_schema_version(1);
  file.add_meta_graphs()->mutable_meta_info_def()->add_tags("train");
  WriteAll(dir + "/saved_model.pb", file.SerializeAsString());
  auto only = LoadSavedModel(dir);
  ASSERT_TRUE(only);
  EXPECT_THAT(only->warnings, ElementsAre(HasSubstr("{train}")));

  tf::MetaGraphDef::MetaInfo* info = file.add_meta_graphs()->mutable_meta_info_def();
  info->add_tags("serve");
  info->add_tags("gpu");
  WriteAll(dir + "/saved_model.pb", file.SerializeAsString());
  EXPECT_THAT(LoadSavedModel(dir).error().message, AllOf(HasSubstr("{train}"), HasSubstr("{serve,gpu}")));

  file.add_meta_graphs()->mutable_meta_info_def()->add_tags("serve");
  WriteAll(dir + "/saved_model.pb", file.SerializeAsString());
  auto serving = LoadSavedModel(dir);
  ASSERT_TRUE(serving);
  EXPECT_EQ(serving->meta_graph->meta_info_def().tags_size(), 1);
}

TEST(LoadSavedModel, RefusesANameDefinedTwice) {
  std::string dir = FreshDir();
  tf::SavedModel file;
  file.set_saved_model_schema_version(1);
  tf::GraphDef* graph = file.add_meta_graphs()->mutable_graph_def();
  for (int i = 0; i < 2; ++i) graph->mutable_library()->add_function()->mutable_signature()->set_name("f");
  WriteAll(dir + "/saved_model.pb", file.SerializeAsString());
  EXPECT_THAT(LoadSavedModel(dir).error().message, AllOf(HasSubstr("function 'f'"), HasSubstr("twice")));
}

TEST(LoadSavedModel, SurvivesAnyDamage) {
  std::string dir = FreshDir();
  ASSERT_TRUE(samples::WriteCounter(dir, 1));
  const std::string path = dir + "/saved_model.pb", bytes = ReadAll(path);
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size(); i += 23) {
    WriteAll(path, bytes.substr(0, i));
    auto truncated = LoadSavedModel(dir);
    refused += !truncated;
    if (!truncated) {
      ASSERT_THAT(truncated.error().message, HasSubstr(path));
    }
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    WriteAll(path, damaged);
    auto model = LoadSavedModel(dir);
    EXPECT_TRUE(SucceedsOrBlamesInput(model));
    if (!model) continue;
    auto variables = Variables::Bind(*model);
    EXPECT_TRUE(SucceedsOrBlamesInput(variables));
    for (size_t k = 0; variables && k < variables->all().size(); ++k)
      EXPECT_TRUE(SucceedsOrBlamesInput(variables->Read(static_cast<int>(k))));
  }
  EXPECT_GT(refused, bytes.size() / 23 * 9 / 10);
}

// One field of a message: a tag and bytes.
std::string Field(char tag, const std::string& bytes) {
  std::string field(1, tag);
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) field += static_cast<char>(size | 0x80);
  return field + static_cast<char>(size) + bytes;
}

TEST(LoadSavedModel, RefusesEndlessNesting) {
  std::string attr;
  for (int i = 0; i < 2000; ++i) attr = Field(0x52, Field(0x12, Field(0x12, attr)));  // func, attr, value
  std::string node = Field(0x2a, Field(0x12, attr));
  std::string dir = FreshDir();
  WriteAll(dir + "/saved_model.pb", std::string("\x08\x01", 2) + Field(0x12, Field(0x12, Field(0x0a, node))));
  EXPECT_THAT(LoadSavedModel(dir).error().message, HasSubstr("damaged"));
}

}  // namespace
}  // namespace fusebox::saved_model
