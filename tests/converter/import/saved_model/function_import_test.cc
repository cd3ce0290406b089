// SPDX-License-Identifier: Apache-2.0
// Graphs and functions as the module's functions: edges, order, what a broken file may claim, several
// signatures.
#include "converter/import/saved_model/function_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "host/graph/npy.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"

namespace fusebox::saved_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace fusebox::models;
using fusebox::testing::FreshDir;

// Signatures "good" (y = -x) and "other" (y = neg of x, by way of Split), whose file `damage` may change.
Result<Imported> ImportDamaged(const std::function<void(tf::SavedModel&)>& damage,
                               const std::vector<std::string>& wanted = {}) {
  SavedModelBuilder model;
  FunctionBuilder& good = model.AddFunction("__inference_good");
  good.Return({good.Op("Neg", {good.Arg("x", tf::DT_FLOAT, {4})}, {4})});
  FunctionBuilder& other = model.AddFunction("__inference_other");
  const Ref x = other.Arg("x", tf::DT_FLOAT, {4});
  const auto halves = other.Ops("Split", {other.Const(Int(0)), x}, {{2}, {2}}, {Attr("num_split", 2)});
  other.Return({other.Op("Neg", {halves[1]}, {2})});
  model.AddSignature("good", good, {"x"}, {"y"});
  model.AddSignature("other", other, {"x"}, {"y"});
  tf::SavedModel proto = model.ToProto();
  damage(proto);
  const std::string dir = FreshDir();
  FUSEBOX_TRY(WriteSavedModel(dir, proto, model.Checkpoint()));
  return Import(dir, wanted);
}

tf::NodeDef& NodeIn(tf::SavedModel& model, const std::string& function, const std::string& op) {
  for (tf::FunctionDef& f :
       *model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library()->mutable_function()) {
    if (f.signature().name().find(function) == std::string::npos) continue;
    for (tf::NodeDef& node : *f.mutable_node_def())
      if (node.op() == op) return node;
  }
  ADD_FAILURE() << "no " << op << " in " << function;
  static tf::NodeDef none;
  return none;
}

// Of ops in functions, which a file does not define.
TEST(FunctionImport, KnowsHowManyOutputsSomeOpsHave) {
  for (const auto& [op, names] :
       std::map<std::string, std::vector<std::string>>{{"UniqueWithCountsV2", {"y", "idx", "count"}},
                                                       {"LookupTableExportV2", {"keys", "values"}},
                                                       {"LookupTableExport", {"keys", "values"}},
                                                       {"StringSplitV2", {"indices", "values", "shape"}},
                                                       {"StringNGrams", {"ngrams", "ngrams_splits"}},
                                                       {"UnicodeDecode", {"row_splits", "char_values"}}}) {
    tf::NodeDef node;
    node.set_op(op);
    const auto outputs = OutputsOf(SavedModel(), node);
    ASSERT_TRUE(outputs) << op;
    EXPECT_EQ(outputs->dtypes.size(), names.size()) << op;
    for (size_t i = 0; i < names.size(); ++i)
      EXPECT_EQ(outputs->first.contains(names[i]) ? outputs->first.at(names[i]) : -1, static_cast<int>(i));
  }
}

TEST(FunctionImport, TakesEverySignatureWithItsFunctions) {
  const auto imported = ImportDamaged([](tf::SavedModel&) {});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->module->signatures.size(), 2u);
  EXPECT_THAT(imported->refused, IsEmpty());
  const Status sound = Verify(*imported->module);
  EXPECT_TRUE(sound) << sound.error().message;
  for (const auto& f : imported->module->functions) {
    for (const auto& node : f->nodes) {
      if (node->name != "Neg" || f->name.find("other") == std::string::npos) continue;
      const Uses uses(*f);
      EXPECT_EQ(uses.producer(node->operands[0])->name, "Split");
      EXPECT_EQ(uses.result_index(node->operands[0]), 1) << "the edge split:output:1";
    }
  }
}

void ExpectOtherRefused(const std::function<void(tf::SavedModel&)>& damage, const std::string& reason) {
  const auto imported = ImportDamaged(damage);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->module->signatures.size(), 1u);
  EXPECT_EQ(imported->module->signatures[0].key, "good");
  ASSERT_EQ(imported->refused.size(), 1u);
  EXPECT_THAT(imported->refused[0].second, HasSubstr(reason));
  EXPECT_TRUE(Verify(*imported->module)) << "nothing of the refused signature stays";
  const auto asked = ImportDamaged(damage, {"other"});
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message, HasSubstr("signature other"));
}

TEST(FunctionImport, RefusesOnlyTheSignatureThatIsBroken) {
  ExpectOtherRefused([](tf::SavedModel& m) { NodeIn(m, "inference_other", "Neg").set_input(0, "Neg:y:0"); },
                     "form a cycle");
  ExpectOtherRefused([](tf::SavedModel& m) { NodeIn(m, "inference_other", "Neg").add_input("^Neg"); },
                     "form a cycle");
  ExpectOtherRefused(
      [](tf::SavedModel& m) { NodeIn(m, "inference_other", "Neg").set_input(0, "Nobody:y:0"); },
      "refers to Nobody");
  ExpectOtherRefused(
      [](tf::SavedModel& m) { NodeIn(m, "inference_other", "Neg").set_input(0, "Split:output:2147483647"); },
      "no such output");
  ExpectOtherRefused(
      [](tf::SavedModel& m) { NodeIn(m, "inference_other", "Neg").set_input(0, "Split:output:x"); },
      "is not an edge");
  ExpectOtherRefused(
      [](tf::SavedModel& m) {
        (*NodeIn(m, "inference_other", "Split").mutable_attr())["num_split"].set_i(-1);
      },
      "num_split is not a number");
  ExpectOtherRefused(
      [](tf::SavedModel& m) {
        (*NodeIn(m, "inference_other", "Neg").mutable_attr())["f"].mutable_func()->set_name("gone");
      },
      "function \"gone\" is not in the library");
}

TEST(FunctionImport, KeepsAFunctionApartThatIsNamedLikeASignature) {
  const auto imported = ImportDamaged([](tf::SavedModel& m) {
    tf::GraphDef& graph = *m.mutable_meta_graphs(0)->mutable_graph_def();
    std::string old;
    for (auto& f : *graph.mutable_library()->mutable_function()) {
      if (f.signature().name().find("inference_good") == std::string::npos) continue;
      old = f.signature().name();
      f.mutable_signature()->set_name("good");
    }
    for (auto& f : *graph.mutable_library()->mutable_function())
      for (auto& node : *f.mutable_node_def())
        for (auto& [name, attr] : *node.mutable_attr())
          if (attr.func().name() == old) attr.mutable_func()->set_name("good");
  });
  ASSERT_TRUE(imported) << imported.error().message;
  const Status sound = Verify(*imported->module);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(imported->module->signatures[0].function, "good_signature");
  EXPECT_NE(imported->module->Find("good"), nullptr);
}

tf::NodeDef& AddTo(tf::SavedModel& model, const std::string& name, const std::string& op,
                   const std::vector<std::string>& inputs) {
  tf::NodeDef& node = *model.mutable_meta_graphs(0)->mutable_graph_def()->add_node();
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  (*node.mutable_attr())["T"].set_type(tf::DT_FLOAT);
  return node;
}

// Feeding outputs of a node in the middle of a graph is what TensorFlow 1 signatures may do.
TEST(FunctionImport, TellsTwoFedOutputsOfOneNodeApart) {
  const auto imported = ImportDamaged([](tf::SavedModel& m) {
    (*AddTo(m, "pair", "Split", {"gone", "gone"}).mutable_attr())["num_split"].set_i(2);
    AddTo(m, "difference", "Sub", {"pair", "pair:1"}).add_input("^pair");
    tf::SignatureDef& signature = (*m.mutable_meta_graphs(0)->mutable_signature_def())["good"];
    tf::TensorInfo info;
    info.set_dtype(tf::DT_FLOAT);
    info.mutable_tensor_shape()->add_dim()->set_size(2);
    signature.clear_inputs();
    signature.clear_outputs();
    info.set_name("pair:0");
    (*signature.mutable_inputs())["a"] = info;
    info.set_name("pair:1");
    (*signature.mutable_inputs())["b"] = info;
    info.set_name("difference:0");
    (*signature.mutable_outputs())["y"] = info;
  });
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->module->signatures.size(), 2u) << imported->refused[0].second;
  const Function& f = *imported->module->Find(imported->module->signatures[0].function);
  ASSERT_EQ(f.nodes.size(), 1u);
  EXPECT_EQ(f.nodes[0]->operands, f.inputs);
}

// In TensorFlow 1 a variable is a node that gives its value.
TEST(FunctionImport, ReadsAVariableOfTensorFlow1WhereItStands) {
  tf::SavedModel file;
  file.set_saved_model_schema_version(1);
  tf::MetaGraphDef& meta_graph = *file.add_meta_graphs();
  meta_graph.mutable_meta_info_def()->add_tags("serve");
  const auto add = [&](const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                       const std::string& type) -> tf::NodeDef& {
    tf::NodeDef& node = *meta_graph.mutable_graph_def()->add_node();
    node.set_name(name);
    node.set_op(op);
    for (const std::string& input : inputs) node.add_input(input);
    (*node.mutable_attr())[type].set_type(tf::DT_FLOAT);
    return node;
  };
  add("x", "Placeholder", {}, "dtype");
  (*add("a", "VariableV2", {}, "dtype").mutable_attr())["shape"].mutable_shape();
  add("a/read", "Identity", {"a"}, "T");
  add("y", "Mul", {"x", "a/read"}, "T");
  add("again", "AssignAdd", {"a", "x"}, "T");
  const auto sign = [&](const char* key, const char* output) {
    tf::SignatureDef& signature = (*meta_graph.mutable_signature_def())[key];
    tf::TensorInfo info;
    info.set_dtype(tf::DT_FLOAT);
    info.mutable_tensor_shape();
    info.set_name("x:0");
    (*signature.mutable_inputs())["x"] = info;
    info.set_name(output);
    (*signature.mutable_outputs())["y"] = info;
  };
  sign("good", "y:0");
  BundleWriter checkpoint;
  checkpoint.Add("a", Float(3));
  const std::string dir = FreshDir();
  ASSERT_TRUE(WriteSavedModel(dir, file, checkpoint));
  const auto imported = Import(dir, {});
  ASSERT_TRUE(imported) << imported.error().message;
  const Function& f = *imported->module->functions[0];
  ASSERT_EQ(f.nodes.size(), 4u) << ToText(f);
  EXPECT_TRUE(f.nodes[0]->is(Op::kVarHandle));
  EXPECT_TRUE(f.nodes[1]->is(Op::kReadVariable));
  EXPECT_EQ(f.nodes[2]->operands, f.nodes[1]->results);
  ASSERT_EQ(imported->module->variables.size(), 1u);
  EXPECT_EQ(imported->module->variables[0].initial.As<float>()[0], 3);
  const Status sound = Verify(*imported->module);
  EXPECT_TRUE(sound) << sound.error().message;
}

TEST(FunctionImport, NamesTheOpWhoseOutputsNobodyDeclares) {
  ExpectOtherRefused(
      [](tf::SavedModel& m) {
        NodeIn(m, "inference_other", "Split").set_op("ParseSomething");
        NodeIn(m, "inference_other", "Neg").set_input(0, "Split:values:1");
      },
      "op ParseSomething: there is no translation of this op");
}

TEST(Edges, OfFunctionsNameAnOutput) {
  const auto edge = ParseEdge("split:output:1", true);
  ASSERT_TRUE(edge);
  EXPECT_EQ(edge->node, "split");
  EXPECT_EQ(edge->output, "output");
  EXPECT_EQ(edge->index, 1);
  EXPECT_TRUE(ParseEdge("^split", true)->control);
  EXPECT_EQ(ParseEdge("x", false)->index, 0);
  for (const char* bad : {":1", "x:", "x:-1", "x:99999999999", "x:y"})
    EXPECT_FALSE(ParseEdge(bad, false)) << bad;
}

// Without their definitions: what T says is the type of an operand.
TEST(Edges, OfOpsThatHaveATypeOfTheirOwn) {
  const SavedModel model;
  const auto type = [&](const char* op, const char* attr = nullptr, tf::DataType said = tf::DT_INVALID) {
    tf::NodeDef node;
    node.set_op(op);
    (*node.mutable_attr())["T"].set_type(tf::DT_FLOAT);
    if (attr) (*node.mutable_attr())[attr].set_type(said);
    const auto outputs = OutputsOf(model, node);
    return outputs && outputs->dtypes.size() == 1 ? outputs->dtypes[0] : DType::kNone;
  };
  EXPECT_EQ(type("Size"), DType::kI32);
  EXPECT_EQ(type("Size", "out_type", tf::DT_INT64), DType::kI64);
  EXPECT_EQ(type("ArgMax"), DType::kI64);
  EXPECT_EQ(type("ArgMax", "output_type", tf::DT_INT32), DType::kI32);
  EXPECT_EQ(type("Less"), DType::kBool);
  EXPECT_EQ(type("ComplexAbs"), DType::kF32);
  EXPECT_EQ(type("Relu"), DType::kF32);
}

tf::Tensor Splat(tf::DataType dtype, std::vector<int64_t> dims) {
  tf::Tensor t;
  t.set_dtype(dtype);
  for (int64_t d : dims) t.mutable_tensor_shape()->add_dim()->set_size(d);
  return t;
}

TEST(Constants, RepeatTheirLastValue) {
  tf::Tensor t = Splat(tf::DT_FLOAT, {4});
  EXPECT_THAT(ToTensor(t)->data.As<float>(), ElementsAre(0, 0, 0, 0));
  t.add_float_val(1);
  t.add_float_val(2);
  EXPECT_THAT(ToTensor(t)->data.As<float>(), ElementsAre(1, 2, 2, 2));
  tf::Tensor s = Splat(tf::DT_STRING, {2});
  s.add_string_val("ab");
  EXPECT_THAT(*UnpackStrings(ToTensor(s)->data), ElementsAre("ab", "ab"));
}

TEST(Constants, ThatClaimMoreThanTheyHoldAreNotAllocated) {
  EXPECT_FALSE(ToTensor(Splat(tf::DT_DOUBLE, {1 << 20, 1 << 10})));
  EXPECT_FALSE(ToTensor(Splat(tf::DT_FLOAT, {int64_t{1} << 40, int64_t{1} << 40})));
  tf::Tensor strings = Splat(tf::DT_STRING, {1 << 24});
  strings.add_string_val(std::string(1 << 16, 'x'));
  EXPECT_FALSE(ToTensor(strings));
  tf::Tensor bytes = Splat(tf::DT_FLOAT, {3});
  bytes.set_tensor_content("12345");
  EXPECT_FALSE(ToTensor(bytes));
}

TEST(Attributes, OfListsKeepTheirKind) {
  tf::AttrValue ints, texts, types;
  ints.mutable_list()->add_i(3);
  texts.mutable_list()->add_s("a");
  types.mutable_list()->add_type(tf::DT_INT64);
  EXPECT_THAT(std::get<std::vector<int64_t>>(*ToAttr(ints)), ElementsAre(3));
  EXPECT_THAT(std::get<std::vector<std::string>>(*ToAttr(texts)), ElementsAre("a"));
  EXPECT_THAT(std::get<std::vector<int64_t>>(*ToAttr(types)), ElementsAre(static_cast<int64_t>(DType::kI64)));
}

}  // namespace
}  // namespace fusebox::saved_model
