// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "host/graph/npy.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/testing/models/models.h"

namespace fusebox::saved_model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;
using namespace fusebox::samples;
using fusebox::testing::FreshDir;
using fusebox::testing::ReadAll;
using fusebox::testing::WriteAll;

Result<Variables> LoadAndBind(const std::string& dir) {
  FUSEBOX_ASSIGN(SavedModel model, LoadSavedModel(dir));
  return Variables::Bind(model);
}

// y = x * first + second, whose variables have the same name.
void BuildTwins(SavedModelBuilder& model) {
  VariableRef first = model.AddVariable("Variable", Float(2), "b/v");
  VariableRef second = model.AddVariable("Variable", Float(3), "a/v");
  FunctionBuilder& f = model.AddFunction("__inference_call");
  Ref x = f.Arg("x", tf::DT_FLOAT, kScalar);
  Ref product = f.Op("Mul", {x, f.Read(first)}, kScalar);
  f.Return({f.Op("AddV2", {product, f.Read(second)}, kScalar)});
  model.AddSignature("serving_default", f, {"x"}, {"y"});
}

tf::NodeDef& NodeOf(tf::SavedModel& model, const std::string& op) {
  tf::GraphDef& graph = *model.mutable_meta_graphs(0)->mutable_graph_def();
  for (tf::FunctionDef& function : *graph.mutable_library()->mutable_function()) {
    for (tf::NodeDef& node : *function.mutable_node_def()) {
      if (node.name() == op) return node;
    }
  }
  ADD_FAILURE() << "no node " << op;
  return *graph.add_node();
}

float ValueOf(const Variables& variables, std::string_view node) {
  auto bytes = variables.Read(*variables.OfNode(node));
  return bytes ? bytes->As<float>()[0] : -1;
}

// Of those that Keras 3 saves twice, the ones that functions capture.
std::set<int> CapturedVariables(const SavedModel& model, const Variables& variables) {
  std::set<int> found;
  for (const auto& [name, function] : model.objects().concrete_functions()) {
    const auto captures = variables.CapturesOf(name);
    for (const Capture& capture : captures ? *captures : std::vector<Capture>())
      found.insert(capture.variable);
  }
  return found;
}

TEST(Variables, AgreeInBothSourcesForEverySampleModel) {
  for (const SampleModel& sample : test_models::NamedModels()) {
    std::string dir = FreshDir();
    ASSERT_TRUE(sample.write(dir, 1)) << sample.name;
    const auto model = LoadSavedModel(dir);
    ASSERT_TRUE(model) << model.error().message;
    auto variables = Variables::Bind(*model);
    ASSERT_TRUE(variables) << sample.name << ": " << variables.error().message;
    EXPECT_TRUE(variables->warnings().empty()) << variables->warnings()[0];
    const std::set<int> captured = CapturedVariables(*model, *variables);
    EXPECT_FALSE(captured.empty());
    for (const int i : captured) {
      const Variable& variable = (*variables)[i];
      EXPECT_EQ(variable.bound_by, "restore function, object graph") << sample.name << " " << variable.name;
      auto bytes = variables->Read(i);
      ASSERT_TRUE(bytes) << bytes.error().message;
      EXPECT_EQ(bytes->size(), *fusebox::Shape(*variables->Shape(i)).element_count() * sizeof(float));
    }
  }
}

// What Keras 3 saves, whose functions name one object while the handle that they are given is filled from the
// other.
std::string WriteKeras3(SavedModelBuilder& model) {
  const VariableRef v = model.AddVariable("v", Float(2), "unused");
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const Ref x = f.Arg("x", tf::DT_FLOAT, kScalar);
  f.Return({f.Op("Mul", {x, f.Read(v)}, kScalar)});
  model.AddSignature("serve", f, {"x"}, {"y"});
  return FreshDir();
}

// Two objects of equal content trade their numbers.
void SwapVariables(tf::SavedObjectGraph& objects) {
  std::vector<int> two;
  for (int id = 0; id < objects.nodes_size(); ++id) {
    if (objects.nodes(id).has_variable()) two.push_back(id);
  }
  ASSERT_EQ(two.size(), 2u);
  const auto swapped = [&](int id) { return id == two[0] ? two[1] : id == two[1] ? two[0] : id; };
  for (tf::SavedObject& object : *objects.mutable_nodes()) {
    for (tf::ObjectReference& child : *object.mutable_children()) child.set_node_id(swapped(child.node_id()));
  }
  for (auto& [name, function] : *objects.mutable_concrete_functions()) {
    for (int& input : *function.mutable_bound_inputs()) input = swapped(input);
  }
}

TEST(Variables, ThatKeras3SavesTwiceAreOne) {
  SavedModelBuilder model(SavedModelBuilder::Exporter::kKeras3);
  const std::string dir = WriteKeras3(model);
  for (const bool order : {true, false}) {  // whichever of the two objects comes first
    tf::SavedModel file = model.ToProto();
    tf::SavedObjectGraph& objects = *file.mutable_meta_graphs(0)->mutable_object_graph_def();
    if (!order) SwapVariables(objects);
    ASSERT_TRUE(WriteSavedModel(dir, file, model.Checkpoint()));
    const auto loaded = LoadSavedModel(dir);
    ASSERT_TRUE(loaded);
    const auto variables = Variables::Bind(*loaded);
    ASSERT_TRUE(variables) << variables.error().message;
    EXPECT_TRUE(variables->warnings().empty()) << variables->warnings()[0];
    const std::set<int> captured = CapturedVariables(*loaded, *variables);
    ASSERT_EQ(captured.size(), 1u);
    const Variable& variable = (*variables)[*captured.begin()];
    EXPECT_EQ(variable.key, "_all_variables/0/.ATTRIBUTES/VARIABLE_VALUE");
    EXPECT_EQ(ValueOf(*variables, variable.node), 2);
    EXPECT_EQ(variables->OfNode("v_1"), *captured.begin());
  }
}

TEST(Variables, ThatKeras3SavesTwiceWithDifferentValuesAreTheRestoreFunctionsWithAWarning) {
  SavedModelBuilder model(SavedModelBuilder::Exporter::kKeras3);
  const std::string dir = WriteKeras3(model);
  for (const auto& other : {Float(3), Zeros({2}), Long(2)}) {
    tf::SavedModel file = model.ToProto();
    BundleWriter checkpoint = model.Checkpoint();
    checkpoint.Add("variables/0/.ATTRIBUTES/VARIABLE_VALUE", other);
    ASSERT_TRUE(WriteSavedModel(dir, file, checkpoint));
    const auto variables = LoadAndBind(dir);
    ASSERT_TRUE(variables) << variables.error().message;
    EXPECT_EQ(ValueOf(*variables, "v_1"), 2);
    EXPECT_THAT(
        variables->warnings(),
        ElementsAre(dir + "/saved_model.pb: variable 'v': the object graph binds it to "
                          "'variables/0/.ATTRIBUTES/VARIABLE_VALUE', whose value differs from that of "
                          "'_all_variables/0/.ATTRIBUTES/VARIABLE_VALUE'; the restore function decides: "
                          "'_all_variables/0/.ATTRIBUTES/VARIABLE_VALUE' is used"));
  }
}

TEST(Variables, OfOneNameAreToldApart) {
  std::string dir = FreshDir();
  SavedModelBuilder model;
  BuildTwins(model);
  ASSERT_TRUE(model.Write(dir));
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  EXPECT_EQ(variables->all().size(), 2u);
  EXPECT_EQ(ValueOf(*variables, "Variable"), 2);
  EXPECT_EQ(ValueOf(*variables, "Variable_1"), 3);
}

TEST(Variables, HoldStrings) {
  const std::string dir = FreshDir();
  SavedModelBuilder model;
  const VariableRef names = model.AddVariable("names", Strings({"a", "", "bc"}), "names");
  FunctionBuilder& f = model.AddFunction("__inference_call");
  f.Return({f.Read(names)});
  model.AddSignature("serving_default", f, {}, {"y"});
  ASSERT_TRUE(model.Write(dir));
  const auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  const auto bytes = variables->Read(*variables->OfNode("names"));
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_THAT(*UnpackStrings(*bytes), ElementsAre("a", "", "bc"));
}

TEST(Variables, AreFoundByOneSourceAlone) {
  for (bool restore : {true, false}) {
    std::string dir = FreshDir();
    SavedModelBuilder model;
    BuildTwins(model);
    tf::SavedModel file = model.ToProto();
    if (restore) {
      file.mutable_meta_graphs(0)->clear_object_graph_def();
    } else {
      file.mutable_meta_graphs(0)->clear_saver_def();
    }
    ASSERT_TRUE(WriteSavedModel(dir, file, model.Checkpoint()));
    auto variables = LoadAndBind(dir);
    ASSERT_TRUE(variables) << variables.error().message;
    EXPECT_EQ(ValueOf(*variables, "Variable"), 2);
    EXPECT_EQ(ValueOf(*variables, "Variable_1"), 3);
    EXPECT_EQ((*variables)[0].bound_by, restore ? "restore function" : "object graph");
  }
}

// A graph that makes the handle of one variable twice; objects, which would tell, are not in the file.
TEST(Variables, NodesOfOneContainerAndNameAreOne) {
  for (const char* container : {"", "elsewhere"}) {
    const std::string dir = FreshDir();
    SavedModelBuilder model;
    const VariableRef v = model.AddVariable("v", Float(2), "v");
    FunctionBuilder& f = model.AddFunction("__inference_call");
    f.Return({f.Op("Mul", {f.Arg("x", tf::DT_FLOAT, kScalar), f.Read(v)}, kScalar)});
    model.AddSignature("serving_default", f, {"x"}, {"y"});
    tf::SavedModel file = model.ToProto();
    tf::MetaGraphDef& graph = *file.mutable_meta_graphs(0);
    graph.clear_object_graph_def();
    std::string first;
    for (const tf::NodeDef& node : graph.graph_def().node()) {
      if (node.op() != "VarHandleOp") continue;
      first = node.name();
      tf::NodeDef again = node;
      again.set_name("again");
      (*again.mutable_attr())["shared_name"].set_s("v");
      (*again.mutable_attr())["container"].set_s(container);
      *graph.mutable_graph_def()->add_node() = again;
      break;
    }
    for (tf::NodeDef& node : *graph.mutable_graph_def()->mutable_node())
      if (node.name() == first) (*node.mutable_attr())["shared_name"].set_s("v");
    ASSERT_TRUE(WriteSavedModel(dir, file, model.Checkpoint()));
    const auto variables = LoadAndBind(dir);
    ASSERT_TRUE(variables) << variables.error().message;
    EXPECT_EQ(variables->OfNode("again") == variables->OfNode(first), *container == 0);
    EXPECT_EQ(ValueOf(*variables, first), 2);
  }
}

TEST(Variables, AreFoundByNameWhenNothingElseSpeaks) {
  std::string dir = FreshDir();
  ASSERT_TRUE(WriteDense(dir, 1));
  tf::SavedModel file;
  ASSERT_TRUE(file.ParseFromString(ReadAll(dir + "/saved_model.pb")));
  file.mutable_meta_graphs(0)->clear_object_graph_def();
  file.mutable_meta_graphs(0)->clear_saver_def();
  WriteAll(dir + "/saved_model.pb", file.SerializeAsString());
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  for (const Variable& variable : variables->all()) {
    EXPECT_EQ(variable.bound_by, "name");
    EXPECT_TRUE(variables->Read(*variables->OfNode(variable.node)));
  }
}

TEST(Variables, ContradictionIsAWarningThatNamesBothKeys) {
  std::string dir = FreshDir();
  SavedModelBuilder model;
  BuildTwins(model);
  tf::SavedModel file = model.ToProto();
  auto& names = *(*NodeOf(file, "RestoreV2/tensor_names").mutable_attr())["value"]
                     .mutable_tensor()
                     ->mutable_string_val();
  names.SwapElements(0, 1);
  ASSERT_TRUE(WriteSavedModel(dir, file, model.Checkpoint()));
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  EXPECT_EQ(ValueOf(*variables, "Variable"), 3);
  EXPECT_EQ(ValueOf(*variables, "Variable_1"), 2);
  ASSERT_EQ(variables->warnings().size(), 2u);
  EXPECT_THAT(variables->warnings()[0],
              AllOf(HasSubstr("'Variable'"), HasSubstr("'b/v/"), HasSubstr("'a/v/")));
}

TEST(Variables, MissingValueNamesVariableKeyAndFile) {
  std::string dir = FreshDir();
  SavedModelBuilder model, other;
  BuildTwins(model);
  BundleWriter checkpoint;
  checkpoint.Add("b/v/.ATTRIBUTES/VARIABLE_VALUE", Float(2));
  ASSERT_TRUE(WriteSavedModel(dir, model.ToProto(), checkpoint));
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  EXPECT_EQ(ValueOf(*variables, "Variable"), 2);
  auto missing = variables->Read(*variables->OfNode("Variable_1"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("'Variable'"), HasSubstr("a/v/.ATTRIBUTES/VARIABLE_VALUE"),
                    HasSubstr("variables.index")));
}

TEST(Variables, ValueOfAnotherTypeOrShapeIsRefused) {
  std::string dir = FreshDir();
  SavedModelBuilder model;
  BuildTwins(model);
  BundleWriter checkpoint = model.Checkpoint();
  checkpoint.Add("b/v/.ATTRIBUTES/VARIABLE_VALUE", Long(2));
  checkpoint.Add("a/v/.ATTRIBUTES/VARIABLE_VALUE", Zeros({2}));
  ASSERT_TRUE(WriteSavedModel(dir, model.ToProto(), checkpoint));
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables);
  EXPECT_THAT(variables->Read(0).error().message, AllOf(HasSubstr("int64[]"), HasSubstr("float32[]")));
  EXPECT_THAT(variables->Read(1).error().message, AllOf(HasSubstr("float32[2]"), HasSubstr("float32[]")));
}

TEST(Variables, WithoutAFolderAreReportedWhenRead) {
  std::string dir = FreshDir();
  ASSERT_TRUE(WriteCounter(dir, 1));
  std::filesystem::remove_all(dir + "/variables");
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables);
  EXPECT_THAT(variables->Read(0).error().message,
              AllOf(HasSubstr("'counter'"), HasSubstr("no variables folder")));
}

TEST(Variables, KnowWhatAFunctionCaptured) {
  std::string dir = FreshDir();
  ASSERT_TRUE(WriteCounter(dir, 1));
  auto model = LoadSavedModel(dir);
  ASSERT_TRUE(model);
  auto variables = Variables::Bind(*model);
  ASSERT_TRUE(variables);
  std::set<size_t> counts;
  for (const auto& [name, function] : model->objects().concrete_functions()) {
    auto captures = variables->CapturesOf(name);
    ASSERT_TRUE(captures);
    EXPECT_EQ((*variables)[captures->at(0).variable].name, "counter");
    counts.insert(captures->size());
  }
  EXPECT_THAT(counts, ElementsAre(1, 2));
  EXPECT_FALSE(variables->CapturesOf("no_such"));
}

// A graph of TensorFlow 1: the restore nodes stand in the main graph.
TEST(Variables, OfTensorFlow1AreFoundThroughTheirRestoreNodes) {
  std::string dir = FreshDir();
  tf::SavedModel file;
  file.set_saved_model_schema_version(1);
  tf::MetaGraphDef& meta_graph = *file.add_meta_graphs();
  meta_graph.mutable_saver_def()->set_restore_op_name("save/restore_all");
  auto add = [&](const char* op, const char* name, std::initializer_list<const char*> inputs,
                 std::vector<Attr> attrs) {
    tf::NodeDef& node = *meta_graph.mutable_graph_def()->add_node();
    node.set_op(op);
    node.set_name(name);
    for (const char* input : inputs) node.add_input(input);
    for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
  };
  add("VariableV2", "a", {}, {Attr("dtype", tf::DT_FLOAT), Attr("shape", kScalar)});
  add("VariableV2", "b", {}, {Attr("dtype", tf::DT_FLOAT), Attr("shape", kScalar)});
  add("Const", "save/names", {}, {Attr("value", Strings({"key/b", "key/a"}))});
  add("Const", "save/slices", {}, {Attr("value", Strings({"", ""}))});
  add("RestoreV2", "save/RestoreV2", {"save/Const", "save/names", "save/slices"}, {});
  add("Assign", "save/Assign", {"b", "save/RestoreV2"}, {});
  add("Assign", "save/Assign_1", {"a", "save/RestoreV2:1"}, {});
  add("NoOp", "save/restore_all", {"^save/Assign", "^save/Assign_1"}, {});
  BundleWriter checkpoint;
  checkpoint.Add("key/a", Float(1));
  checkpoint.Add("key/b", Float(2));
  ASSERT_TRUE(WriteSavedModel(dir, file, checkpoint));
  auto variables = LoadAndBind(dir);
  ASSERT_TRUE(variables) << variables.error().message;
  EXPECT_EQ(ValueOf(*variables, "a"), 1);
  EXPECT_EQ(ValueOf(*variables, "b"), 2);
}

TEST(RealModels, BindAllTheirVariables) {
  const char* models = std::getenv("FUSEBOX_MODELS");
  if (!models) GTEST_SKIP() << "FUSEBOX_MODELS is not set";
  int bound = 0, refused = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(models) / "savedmodel")) {
    if (file.path().filename() != "saved_model.pb") continue;
    std::string dir = file.path().parent_path().string();
    auto variables = LoadAndBind(dir);
    if (!variables) {
      EXPECT_THAT(variables.error().message, HasSubstr("missing, although")) << dir;
      ++refused;
      continue;
    }
    ++bound;
    for (size_t i = 0; i < variables->all().size(); ++i) {
      if ((*variables)[static_cast<int>(i)].key.empty()) continue;  // never saved
      auto bytes = variables->Read(static_cast<int>(i));
      EXPECT_TRUE(bytes) << bytes.error().message;
    }
  }
  EXPECT_EQ(bound, 24);
  EXPECT_EQ(refused, 1);  // one was published without its data
}

}  // namespace
}  // namespace fusebox::saved_model
