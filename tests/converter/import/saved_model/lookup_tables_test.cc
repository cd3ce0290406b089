// SPDX-License-Identifier: Apache-2.0
// Lookup tables as exporters write them, from the file to the numbers: what fills them lies in initializers,
// assets or the checkpoint.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <map>

#include "host/graph/npy.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;

TensorValue Longs(const std::vector<int64_t>& values) {
  return {tf::DT_INT64,
          {static_cast<int64_t>(values.size())},
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)),
          {}};
}

// A SavedModel of one lookup, y = table[x]; what fills the table is added by the test.
struct LookupModel {
  tf::SavedModel proto;
  BundleWriter checkpoint;
  std::map<std::string, std::string> assets;
  std::string link;  // added to the name of the folder it names a file that words.txt is a link to
  tf::MetaGraphDef& meta = *proto.add_meta_graphs();

  LookupModel(tf::DataType key, tf::DataType value, const TensorValue& otherwise,
              const std::string& op = "HashTableV2") {
    proto.set_saved_model_schema_version(1);
    meta.mutable_meta_info_def()->add_tags("serve");
    Node("Placeholder", "x", {}, {Attr("dtype", key)});
    Node(op, "table", {}, {Attr("key_dtype", key), Attr("value_dtype", value)});
    Const("default", otherwise);
    // The lookup is in a function, as TensorFlow 2 writes it.
    tf::FunctionDef& f = AddFunction("lookup", {{"x", key}, {"table", tf::DT_RESOURCE}, {"default", value}});
    tf::OpDef::Arg& y = *f.mutable_signature()->add_output_arg();
    y.set_name("y");
    y.set_type(value);
    (*f.mutable_ret())["y"] = "find:values:0";
    Node("LookupTableFindV2", "find", {"table", "x", "default"}, {Attr("Tin", key), Attr("Tout", value)},
         f.add_node_def());
    Call("call", f, {"x", "table", "default"}, {value});
    tf::SignatureDef& s = (*meta.mutable_signature_def())["serving_default"];
    Info((*s.mutable_inputs())["x"], "x:0", key);
    Info((*s.mutable_outputs())["y"], "call:0", value);
  }

  static void Info(tf::TensorInfo& info, const std::string& name, tf::DataType dtype) {
    info.set_name(name);
    info.set_dtype(dtype);
    info.mutable_tensor_shape()->add_dim()->set_size(-1);
  }
  tf::NodeDef& Node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                    const std::vector<Attr>& attrs, tf::NodeDef* node = nullptr) {
    if (!node) node = meta.mutable_graph_def()->add_node();
    node->set_op(op);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    for (const Attr& attr : attrs) (*node->mutable_attr())[attr.key] = attr.proto;
    return *node;
  }
  void Const(const std::string& name, const TensorValue& value) {
    Node("Const", name, {}, {Attr("dtype", value.dtype), Attr("value", value)});
  }
  tf::FunctionDef& AddFunction(const std::string& name,
                               const std::vector<std::pair<std::string, tf::DataType>>& args) {
    tf::FunctionDef& f = *meta.mutable_graph_def()->mutable_library()->add_function();
    f.mutable_signature()->set_name(name);
    for (const auto& [arg, dtype] : args) {
      f.mutable_signature()->add_input_arg()->set_name(arg);
      f.mutable_signature()->mutable_input_arg()->rbegin()->set_type(dtype);
    }
    return f;
  }
  void Call(const std::string& name, const tf::FunctionDef& f, const std::vector<std::string>& inputs,
            const std::vector<tf::DataType>& types) {
    Node("StatefulPartitionedCall", name, inputs, {Attr("f", f.signature().name(), {}), Attr("Tout", types)});
  }
  // Asks the table something else in place of the lookup; y is the first thing that gives.
  LookupModel& Ask(const std::string& op, const std::string& output) {
    tf::FunctionDef& f = *meta.mutable_graph_def()->mutable_library()->mutable_function(0);
    (*f.mutable_ret())["y"] = "find:" + output + ":0";
    f.mutable_node_def(0)->set_op(op);
    f.mutable_node_def(0)->clear_input();
    f.mutable_node_def(0)->add_input("table");
    return *this;
  }
  // A node that the lookup waits for, of an op that the file defines without outputs.
  LookupModel& Before(const std::string& op, const std::string& name) {
    meta.mutable_meta_info_def()->mutable_stripped_op_list()->add_op()->set_name(op);
    if (op != "HashTableV2") Node(op, name, {}, {Attr("dtype", tf::DT_FLOAT), Attr("shape", kScalar)});
    for (tf::NodeDef& node : *meta.mutable_graph_def()->mutable_node())
      if (node.name() == "call") node.add_input("^" + name);
    return *this;
  }
  std::string Refusal() {
    const auto converted = Convert();
    return converted ? "converted" : converted.error().message;
  }
  // What a function of TensorFlow 2 does when the model is loaded.
  LookupModel& Filled(const TensorValue& keys, const TensorValue& values) {
    Const("keys", keys);
    Const("values", values);
    tf::FunctionDef& f =
        AddFunction("fill", {{"table", tf::DT_RESOURCE}, {"k", keys.dtype}, {"v", values.dtype}});
    Node("LookupTableImportV2", "import", {"table", "k", "v"}, {}, f.add_node_def());
    Call("fill_call", f, {"table", "keys", "values"}, {});
    return *this;
  }
  // Its path is a variable that a placeholder is assigned to.
  LookupModel& FromAsset(const std::string& text, int64_t key, int64_t value,
                         const std::string& file = "words.txt") {
    assets[file] = text;
    Node("Placeholder", "path", {}, {Attr("dtype", tf::DT_STRING)});
    Node("VarHandleOp", "Variable", {}, {Attr("dtype", tf::DT_STRING), Attr("shape", kScalar)});
    Node("AssignVariableOp", "assign", {"Variable", "path"}, {});
    Node("ReadVariableOp", "read", {"Variable"}, {Attr("dtype", tf::DT_STRING)});
    tf::AssetFileDef& asset = *meta.add_asset_file_def();
    asset.mutable_tensor_info()->set_name("path:0");
    asset.set_filename(file);
    tf::FunctionDef& f = AddFunction("fill", {{"table", tf::DT_RESOURCE}, {"file", tf::DT_STRING}});
    Node("InitializeTableFromTextFileV2", "init", {"table", "file"},
         {Attr("key_index", key), Attr("value_index", value), Attr("vocab_size", -1), Attr("delimiter", ";")},
         f.add_node_def());
    Call("fill_call", f, {"table", "read"}, {});
    return *this;
  }

  Result<Converted> Convert() {
    const std::string dir = testing::FreshDir();
    FUSEBOX_TRY(WriteSavedModel(dir, proto, checkpoint));
    std::filesystem::create_directories(dir + "/assets");
    for (const auto& [name, text] : assets)
      if (!name.starts_with("..")) testing::WriteAll(dir + "/assets/" + name, text);
    if (!link.empty()) {
      testing::WriteAll(dir + link, "outside\n");
      std::filesystem::remove(dir + "/assets/words.txt");
      std::filesystem::create_symlink(dir + link, dir + "/assets/words.txt");
    }
    Conversion conversion = FromSavedModel(dir);
    conversion.options.registry = BuiltIn();
    return conversion.Convert();
  }
  // The values that the converted model finds for these keys.
  Tensor Find(const Tensor& keys) {
    const auto converted = Convert();
    EXPECT_TRUE(converted) << converted.error().message;
    if (!converted) return {};
    const auto program = run::Program::Create(*converted->module, BuiltIn());
    EXPECT_TRUE(program) << program.error().message << ToText(*converted->module);
    if (!program) return {};
    const auto runner = run::Runner::Create(**program, 1);
    const std::vector<Tensor> inputs = {keys};
    const auto outputs = (*runner)->Run(converted->module->signatures[0].function, inputs);
    EXPECT_TRUE(outputs) << outputs.error().message;
    return outputs ? (*outputs)[0] : Tensor();
  }
};

Tensor Words(const std::vector<std::string>& words) {
  return {{DType::kString, {static_cast<int64_t>(words.size())}}, PackStrings(words)};
}
Tensor Long(const std::vector<int64_t>& values) {
  return {{DType::kI64, {static_cast<int64_t>(values.size())}}, Buffer::Of<int64_t>(values)};
}
std::vector<int64_t> LongsOf(const Tensor& tensor) {
  const auto values = tensor.data.As<int64_t>();
  return {values.begin(), values.end()};
}
std::vector<std::string> WordsOf(const Tensor& tensor) {
  const auto words = UnpackStrings(tensor.data);
  return words ? *words : std::vector<std::string>{"broken"};
}

TEST(LookupTables, FindNumbersByStrings) {
  LookupModel model(tf::DT_STRING, tf::DT_INT64, models::Long(-1));
  model.Filled(Strings({"a", "bc", ""}), Longs({7, 8, 9}));
  EXPECT_THAT(LongsOf(model.Find(Words({"bc", "x", "", "a"}))), ElementsAre(8, -1, 9, 7));
}

TEST(LookupTables, FindStringsByNumbers) {
  LookupModel model(tf::DT_INT64, tf::DT_STRING, models::String("?"));
  model.Filled(Longs({0, 1, 5}), Strings({"a", "bc", "d"}));
  EXPECT_THAT(WordsOf(model.Find(Long({1, 2, 5}))), ElementsAre("bc", "?", "d"));
}

TEST(LookupTables, FindStringsByStrings) {
  LookupModel model(tf::DT_STRING, tf::DT_STRING, models::String("?"));
  model.Filled(Strings({"a", "bc"}), Strings({"A", "BC"}));
  EXPECT_THAT(WordsOf(model.Find(Words({"bc", "b", "a"}))), ElementsAre("BC", "?", "A"));
}

TEST(LookupTables, FindRealsByStrings) {
  LookupModel model(tf::DT_STRING, tf::DT_FLOAT, models::Float(-0.5f));
  const std::vector<float> values = {0.25f, 8};
  model.Filled(Strings({"a", "b"}), models::Floats({2}, values));
  EXPECT_THAT(FloatsOf(model.Find(Words({"b", "c", "a"}))), ElementsAre(8, -0.5f, 0.25f));
}

TEST(LookupTables, FindNumbersByNumbersThatLieClose) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({-3, 10, 2, 1000}), Longs({4, 5, 6, 7}));
  EXPECT_THAT(LongsOf(model.Find(Long({2, -3, -4, 1001, 1000, INT64_MAX, INT64_MIN, 3, 10}))),
              ElementsAre(6, 4, -1, -1, 7, -1, -1, -1, 5));
}

TEST(LookupTables, FindNumbersByNumbersThatLieFarApart) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({-3, INT64_MAX, 1000000000000}), Longs({4, 5, 6}));
  EXPECT_THAT(LongsOf(model.Find(Long({1000000000000, -3, 0, INT64_MAX}))), ElementsAre(6, 4, -1, 5));
}

TEST(LookupTables, ReadTheColumnsOfAnAsset) {
  LookupModel lines(tf::DT_STRING, tf::DT_INT64, models::Long(-1));
  lines.FromAsset("the\na;b\n\nlast", -2, -1);
  EXPECT_THAT(LongsOf(lines.Find(Words({"last", "a;b", "", "no"}))), ElementsAre(3, 1, 2, -1));
  LookupModel columns(tf::DT_INT64, tf::DT_STRING, models::String("?"));
  columns.FromAsset("the;4;x\na;-2;y\n", 1, 0);
  EXPECT_THAT(WordsOf(columns.Find(Long({-2, 4, 0}))), ElementsAre("a", "the", "?"));
}

TEST(LookupTables, ReadLinesThatEndAsOnWindows) {
  LookupModel model(tf::DT_STRING, tf::DT_INT64, models::Long(-1));
  model.FromAsset("dog\r\ncat\r\n\r\r\nlast\r", -2, -1);
  EXPECT_THAT(LongsOf(model.Find(Words({"cat", "dog", "\r", "last"}))), ElementsAre(1, 0, 2, 3));
}

TEST(LookupTables, SayWhatIsWrongWithAnAsset) {
  const auto why = [](LookupModel&& model) {
    const auto converted = model.Convert();
    return converted ? std::string("converted") : converted.error().message;
  };
  LookupModel number(tf::DT_INT64, tf::DT_STRING, models::String("?"));
  EXPECT_THAT(why(std::move(number.FromAsset("a;1\nb;2x\n", 1, 0))),
              AllOf(HasSubstr("words.txt: line 2"), HasSubstr("\"2x\" is not a number")));
  LookupModel large(tf::DT_INT32, tf::DT_STRING, models::String("?"));
  EXPECT_THAT(why(std::move(large.FromAsset("3000000000;x\n", 0, 1))),
              HasSubstr("does not fit into 32 bits"));
  LookupModel column(tf::DT_STRING, tf::DT_INT64, models::Long(0));
  EXPECT_THAT(why(std::move(column.FromAsset("a\n", 0, 1))), HasSubstr("line 1: it has no column 1"));
  LookupModel outside(tf::DT_STRING, tf::DT_INT64, models::Long(0));
  EXPECT_THAT(why(std::move(outside.FromAsset("a\n", -2, -1, "../words.txt"))), HasSubstr("outside"));
  LookupModel linked(tf::DT_STRING, tf::DT_INT64, models::Long(0));
  linked.link = "-secret.txt";
  EXPECT_THAT(why(std::move(linked.FromAsset("a\n", -2, -1))), HasSubstr("a link out of the model's folder"));
  LookupModel wide(tf::DT_STRING, tf::DT_DOUBLE, {tf::DT_DOUBLE, kScalar, std::string(8, 0), {}});
  EXPECT_THAT(why(std::move(wide.FromAsset("a;1.5\n", 0, 1))), HasSubstr("a column of f64"));
}

TEST(LookupTables, AreRestoredFromTheCheckpoint) {
  LookupModel model(tf::DT_STRING, tf::DT_INT64, models::Long(-1), "MutableHashTableV2");
  model.checkpoint.Add("table/.ATTRIBUTES/table-keys", Strings({"a", "b"}));
  model.checkpoint.Add("table/.ATTRIBUTES/table-values", Longs({3, 4}));
  model.Const("names", Strings({"table/.ATTRIBUTES/table-keys", "table/.ATTRIBUTES/table-values"}));
  model.Node("RestoreV2", "restore", {"default", "names", "default"}, {});
  model.Node("LookupTableImportV2", "import", {"table", "restore", "restore:1"}, {});
  EXPECT_THAT(LongsOf(model.Find(Words({"b", "c"}))), ElementsAre(4, -1));
}

TEST(LookupTables, ThatNothingFillsAreRefused) {
  LookupModel model(tf::DT_STRING, tf::DT_INT64, models::Long(-1));
  const auto converted = model.Convert();
  ASSERT_FALSE(converted);
  EXPECT_THAT(converted.error().message, HasSubstr("no initializer runs before the model"));
}

TEST(LookupTables, AreNotFollowedThroughAVariableThatReadsItself) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Node("ReadVariableOp", "r", {"r"}, {Attr("dtype", tf::DT_INT64)});
  model.Node("LookupTableImportV2", "import", {"table", "r", "r"}, {});
  EXPECT_THAT(model.Refusal(), HasSubstr("its contents are computed"));
}

TEST(LookupTables, AreRefusedWhereTheFileDefinesThemWithoutOutputs) {
  for (const auto& [op, name] :
       {std::pair("HashTableV2", "table"), {"VarHandleOp", "v"}, {"VariableV2", "v"}}) {
    LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
    model.Filled(Longs({1}), Longs({2})).Before(op, name);
    EXPECT_THAT(model.Refusal(), HasSubstr("its definition has no output")) << op;
  }
}

// Each call is looked into, but what the function holds is listed once.
TEST(LookupTables, AreSoughtInLittleMemory) {
  constexpr int kMany = 3000;
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({1}), Longs({2}));
  tf::FunctionDef& f = model.AddFunction("large", {});
  for (int i = 0; i < kMany; ++i) model.Node("NoOp", "n" + std::to_string(i), {}, {}, f.add_node_def());
  for (int i = 0; i < kMany; ++i) model.Node("large", "c" + std::to_string(i), {}, {});
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(LongsOf(model.Find(Long({1, 3}))), ElementsAre(2, -1));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 300 * 1024);  // kB
}

TEST(LookupTables, AreRefusedWhereWhatTheyHoldIsInDoubt) {
  const auto twice = [](bool restored) {
    LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
    model.checkpoint.Add("values", Longs({30, 40}));
    model.Const("names", Strings({"values"}));
    model.Const("k", Longs({1, 2}));
    model.Const("a", Longs({10, 20}));
    model.Node("VarHandleOp", "v", {}, {Attr("dtype", tf::DT_INT64), Attr("shape", Shape{2})});
    model.Node("AssignVariableOp", "z_assign", {"v", "a"}, {});
    model.Node("RestoreV2", "restore", {"default", "names", "default"}, {});
    model.Node("AssignVariableOp", "b_assign", {"v", restored ? "restore" : "k"}, {});
    model.Node("ReadVariableOp", "r", {"v"}, {Attr("dtype", tf::DT_INT64)});
    model.Node("LookupTableImportV2", "import", {"table", "k", "r"}, {});
    return model;
  };
  LookupModel restored = twice(true), constant = twice(false);
  EXPECT_THAT(LongsOf(restored.Find(Long({2, 1}))), ElementsAre(40, 30));
  EXPECT_THAT(constant.Refusal(), HasSubstr("its contents are computed"));
  LookupModel fillers(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  fillers.Filled(Longs({1}), Longs({2}));
  fillers.Const("others", Longs({3}));
  fillers.Node("LookupTableImportV2", "again", {"table", "keys", "others"}, {});
  EXPECT_THAT(fillers.Refusal(), HasSubstr("several initializers of unknown order"));
}

TEST(LookupTables, CountDifferentKeys) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({1, 1, 2}), Longs({5, 5, 6})).Ask("LookupTableSizeV2", "size");
  EXPECT_THAT(LongsOf(model.Find(Long({0}))), ElementsAre(2));
}

TEST(LookupTables, GiveTheirKeysAndValues) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({1, 4}), Longs({5, 6})).Ask("LookupTableExportV2", "values");
  EXPECT_THAT(LongsOf(model.Find(Long({0}))), ElementsAre(5, 6));
}

TEST(LookupTables, OfNothingGiveTheDefault) {
  LookupModel model(tf::DT_STRING, tf::DT_FLOAT, models::Float(-0.5f));
  model.FromAsset("", 0, 1);
  EXPECT_THAT(FloatsOf(model.Find(Words({"a", ""}))), ElementsAre(-0.5f, -0.5f));
}

TEST(LookupTables, OfFewNumbersAreWrittenSmall) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({1, 1000000}), Longs({5, 6}));
  EXPECT_THAT(LongsOf(model.Find(Long({1000000, 2, 1}))), ElementsAre(6, -1, 5));
  const auto converted = model.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  for (const auto& f : converted->module->functions)
    for (ValueId v = 0; v < static_cast<ValueId>(f->value_count()); ++v)
      EXPECT_LT(f->value(v).data.size(), size_t{1} << 16);
}

TEST(LookupTables, AreNoOutputs) {
  LookupModel model(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  model.Filled(Longs({1}), Longs({5}));
  tf::SignatureDef& s = (*model.meta.mutable_signature_def())["serving_default"];
  LookupModel::Info((*s.mutable_outputs())["z"], "table:0", tf::DT_RESOURCE);
  EXPECT_THAT(model.Refusal(), HasSubstr("output z is a resource, not a tensor"));
}

// Attributes of a file that are called as those of the tables here.
TEST(LookupTables, AreNotTakenFromAttributes) {
  LookupModel unknown(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  unknown.Filled(Longs({1}), Longs({5}));
  unknown.Node("FooBar", "foo", {}, {Attr("dtype", tf::DT_FLOAT), Attr("keys", Longs({1}))});
  tf::SignatureDef& s = (*unknown.meta.mutable_signature_def())["serving_default"];
  LookupModel::Info((*s.mutable_outputs())["z"], "foo:0", tf::DT_FLOAT);
  EXPECT_THAT(unknown.Refusal(), HasSubstr("op FooBar (foo): there is no translation of this op"));
  LookupModel empty(tf::DT_INT64, tf::DT_INT64, models::Long(-1));
  for (tf::NodeDef& node : *empty.meta.mutable_graph_def()->mutable_node()) {
    if (node.name() != "table") continue;
    (*node.mutable_attr())["keys"] = Attr("keys", Longs({1})).proto;
    (*node.mutable_attr())["values"] = Attr("values", Longs({1})).proto;
    (*node.mutable_attr())["reason"] = Attr("reason", "because").proto;
  }
  EXPECT_THAT(empty.Refusal(), HasSubstr("no initializer runs before the model"));
}

}  // namespace
}  // namespace fusebox::converter
