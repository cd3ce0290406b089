// SPDX-License-Identifier: Apache-2.0
// Functions of a SavedModel's objects that are no signatures, imported as signatures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "converter/import/saved_model/function_import.h"
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"
#include "tests/converter/import/files.h"

namespace fusebox::saved_model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace fusebox::models;
using namespace fusebox::samples;
using fusebox::testing::FreshDir;

// A signature that is fed strings, and beside it a function y = -x that the objects know, twice if asked.
std::string WriteFedWithStrings(bool twice = false) {
  SavedModelBuilder model;
  FunctionBuilder& fed = model.AddFunction("__inference_serve_examples");
  const Ref text = fed.Arg("examples", tf::DT_STRING, {1});
  fed.Return({fed.Op("Identity", {text}, {1})});
  model.AddSignature("serving_default", fed, {"examples"}, {"y"});
  std::vector<std::string> names;
  for (int i = 0; i < (twice ? 2 : 1); ++i) {
    FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
    f.Return({f.Op("Neg", {f.Arg("x", tf::DT_FLOAT, {4})}, {4})});
    names.push_back(f.name());
  }
  tf::SavedModel proto = model.ToProto();
  tf::MetaGraphDef& graph = *proto.mutable_meta_graphs(0);
  for (const std::string& name : names)
    (*graph.mutable_object_graph_def()->mutable_concrete_functions())[name];
  for (tf::FunctionDef& f : *graph.mutable_graph_def()->mutable_library()->mutable_function())
    for (tf::NodeDef& node : *f.mutable_node_def())
      if (f.signature().name().starts_with("__inference_serve") && node.op() == "Identity")
        node.set_input(0, "gone:y:0");  // what parses them cannot be imported
  const std::string dir = FreshDir();
  const Status written = WriteSavedModel(dir, proto, model.Checkpoint());
  EXPECT_TRUE(written) << written.error().message;
  return dir;
}

TEST(SavedFunctions, AreSignaturesByTheirAuthorsName) {
  const auto imported = Import(WriteFedWithStrings(), {"_wrapped_model"});
  ASSERT_TRUE(imported) << imported.error().message;
  const Module& module = *imported->module;
  const Status sound = Verify(module);
  EXPECT_TRUE(sound) << sound.error().message;
  ASSERT_EQ(module.signatures.size(), 1u);
  EXPECT_EQ(module.signatures[0].key, "_wrapped_model");
  EXPECT_THAT(module.signatures[0].input_names, ElementsAre("x"));
  EXPECT_EQ(module.signatures[0].output_names.size(), 1u);
  const Function& f = *module.Find(module.signatures[0].function);
  EXPECT_EQ(f.value(f.inputs[0]).type, (Type{DType::kF32, {4}}));
}

TEST(SavedFunctions, AreNamedWhereNoSignatureConverts) {
  const auto refused = Import(WriteFedWithStrings(), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("signature serving_default"),
                                             HasSubstr("functions for --signature: _wrapped_model"),
                                             Not(HasSubstr("signature_wrapper"))));
}

TEST(SavedFunctions, OfOneNameAreToldApart) {
  const auto refused = Import(WriteFedWithStrings(true), {"_wrapped_model"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("there are several functions of that name: __inference_"));
}

TEST(SavedFunctions, AreGivenTheVariablesThatTheyCaptured) {
  const std::string dir = FreshDir();
  ASSERT_TRUE(WriteCounter(dir, 1));
  const auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model) << model.error().message;
  for (const auto& [name, function] : model->objects().concrete_functions()) {
    const auto imported = Import(dir, {name});
    ASSERT_TRUE(imported) << imported.error().message;
    const Status sound = Verify(*imported->module);
    EXPECT_TRUE(sound) << sound.error().message;
    EXPECT_EQ(imported->module->variables.size(), static_cast<size_t>(function.bound_inputs_size()));
  }
}

TEST(SavedFunctions, AreGivenWhatTheyCapturedInItsOrder) {
  const std::string dir = FreshDir();
  ASSERT_TRUE(WriteCounter(dir, 1));
  const auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model) << model.error().message;
  std::string add;
  for (const auto& [name, function] : model->objects().concrete_functions())
    if (function.bound_inputs_size() == 2) add = name;
  const auto imported = Import(dir, {add});
  ASSERT_TRUE(imported) << imported.error().message;
  const Function& f = *imported->module->Find(imported->module->signatures[0].function);
  std::map<ValueId, std::string> handles;
  for (const auto& node : f.nodes)
    if (node->is(Op::kVarHandle)) handles[node->results[0]] = node->attrs.str("shared_name", "");
  const Node& call = *f.nodes.back();
  ASSERT_EQ(call.op, Op::kCall);
  ASSERT_EQ(call.operands.size(), 3u);
  EXPECT_EQ(handles[call.operands[1]], "counter");
  EXPECT_EQ(handles[call.operands[2]], "scale");
}

}  // namespace
}  // namespace fusebox::saved_model
