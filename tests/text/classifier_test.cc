// SPDX-License-Identifier: Apache-2.0
// A SavedModel from texts to scores, with the graph that TextVectorization exports, as one .tflite file.
#include <filesystem>

#include "host/base/buffer.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/text/text_run.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using namespace fusebox::models;

// Three words and their rows; unknown words are 1, padding is 0.
const std::vector<std::string> kVocabulary = {"good", "bad", "film"};
constexpr int64_t kRows = 5, kWidth = 2, kLength = 4;
const std::vector<float> kTable = {0, 0, 0.5F, 0.5F, 2, -1, -2, 1, 0.25F, 0.25F};

template <class T>
TensorValue Numbers(tf::DataType dtype, const std::vector<int64_t>& shape, const std::vector<T>& values) {
  return {dtype,
          Shape(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)),
          {}};
}
TensorValue Long(int64_t value) { return Numbers<int64_t>(tf::DT_INT64, {}, {value}); }
TensorValue Text(const std::string& text) { return {tf::DT_STRING, Shape::Scalar(), "", {text}}; }
TensorValue Ints(const std::vector<int32_t>& values) {
  return Numbers<int32_t>(tf::DT_INT32, {static_cast<int64_t>(values.size())}, values);
}
TensorValue Int(int32_t value) { return Numbers<int32_t>(tf::DT_INT32, {}, {value}); }

class TextModel {
 public:
  // Without a definition of its op, the converter knows the outputs of StringSplitV2 from its own table.
  explicit TextModel(bool defined = true) : defined_(defined) {
    proto_.set_saved_model_schema_version(1);
    meta_.mutable_meta_info_def()->add_tags("serve");
    into_ = meta_.mutable_graph_def()->mutable_node();
    Op("Placeholder", "text", {}, {Attr("dtype", tf::DT_STRING)});
    Op("HashTableV2", "table", {}, {Attr("key_dtype", tf::DT_STRING), Attr("value_dtype", tf::DT_INT64)});
    Const("words", Strings(kVocabulary));
    Const("numbers", Numbers<int64_t>(tf::DT_INT64, {3}, {2, 3, 4}));
    Op("LookupTableImportV2", "fill", {"table", "words", "numbers"}, {});
    Score();
    tf::SignatureDef& s = (*meta_.mutable_signature_def())["serving_default"];
    Info((*s.mutable_inputs())["text"], "text:0", tf::DT_STRING, {-1, 1});
    Info((*s.mutable_outputs())["scores"], "call:0", tf::DT_FLOAT, {-1, kWidth});
  }

  Status Write(const std::string& dir) { return WriteSavedModel(dir, proto_, checkpoint_); }

 private:
  static void Info(tf::TensorInfo& info, const std::string& name, tf::DataType dtype,
                   std::vector<int64_t> dims) {
    info.set_name(name);
    info.set_dtype(dtype);
    for (const int64_t dim : dims) info.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  std::string Op(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                 const std::vector<Attr>& attrs) {
    tf::NodeDef& node = *into_->Add();
    node.set_op(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
    return name + ":output:0";
  }
  std::string Const(const std::string& name, const TensorValue& value) {
    return Op("Const", name, {}, {Attr("dtype", value.dtype), Attr("value", value)});
  }
  // An op whose result has the element type of attribute T.
  std::string Typed(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                    tf::DataType dtype, std::vector<Attr> attrs = {}) {
    attrs.emplace_back("T", dtype);
    return Op(op, name, inputs, attrs);
  }
  void Define(const std::string& op, const std::vector<std::pair<std::string, tf::DataType>>& results) {
    tf::OpDef& def = *meta_.mutable_meta_info_def()->mutable_stripped_op_list()->add_op();
    def.set_name(op);
    for (const auto& [name, dtype] : results) {
      def.add_output_arg()->set_name(name);
      def.mutable_output_arg()->rbegin()->set_type(dtype);
    }
  }

  // Lower case, no punctuation, words, their numbers, a padded matrix; the mean of their rows.
  void Score() {
    if (defined_)
      Define("StringSplitV2",
             {{"indices", tf::DT_INT64}, {"values", tf::DT_STRING}, {"shape", tf::DT_INT64}});
    tf::FunctionDef& f = *meta_.mutable_graph_def()->mutable_library()->add_function();
    f.mutable_signature()->set_name("score");
    for (const auto& [arg, dtype] : {std::pair("text", tf::DT_STRING), std::pair("table", tf::DT_RESOURCE)}) {
      f.mutable_signature()->add_input_arg()->set_name(arg);
      f.mutable_signature()->mutable_input_arg()->rbegin()->set_type(dtype);
    }
    f.mutable_signature()->add_output_arg()->set_name("scores");
    f.mutable_signature()->mutable_output_arg(0)->set_type(tf::DT_FLOAT);
    auto* const main = std::exchange(into_, f.mutable_node_def());
    const std::string lower = Op("StringLower", "lower", {"text"}, {});
    const std::string plain =
        Op("StaticRegexReplace", "plain", {lower},
           {Attr("pattern", R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])"), Attr("rewrite", "")});
    const std::string flat =
        Typed("Squeeze", "flat", {plain}, tf::DT_STRING, {Attr("squeeze_dims", std::vector<int64_t>{-1})});
    Op("StringSplitV2", "split", {flat, Const("space", Text(""))}, {});
    const std::string rows = Typed(
        "StridedSlice", "rows",
        {"split:indices:0", Const("b", Ints({0, 0})), Const("e", Ints({0, 1})), Const("s", Ints({1, 1}))},
        tf::DT_INT64, {Attr("begin_mask", 1), Attr("end_mask", 1), Attr("shrink_axis_mask", 2)});
    const std::string count =
        Typed("StridedSlice", "count",
              {"split:shape:0", Const("b1", Ints({0})), Const("e1", Ints({1})), Const("s1", Ints({1}))},
              tf::DT_INT64, {Attr("shrink_axis_mask", 1)});
    const std::string ids =
        Op("Cast", "ids", {rows}, {Attr("SrcT", tf::DT_INT64), Attr("DstT", tf::DT_INT32)});
    const std::string size =
        Op("Cast", "size", {count}, {Attr("SrcT", tf::DT_INT64), Attr("DstT", tf::DT_INT32)});
    const std::string counts =
        Typed("Bincount", "counts", {ids, size, Const("none", Numbers<int64_t>(tf::DT_INT64, {0}, {}))},
              tf::DT_INT64);
    const std::string ends = Typed("Cumsum", "ends", {counts, Const("axis", Int(0))}, tf::DT_INT64);
    const std::string splits =
        Typed("ConcatV2", "splits",
              {Const("first", Numbers<int64_t>(tf::DT_INT64, {1}, {0})), ends, Const("axis0", Int(0))},
              tf::DT_INT64, {Attr("N", 2)});
    const std::string found =
        Op("LookupTableFindV2", "find", {"table", "split:values:0", Const("unknown", Long(1))},
           {Attr("Tin", tf::DT_STRING), Attr("Tout", tf::DT_INT64)});
    const std::string dense = Typed(
        "RaggedTensorToTensor", "dense",
        {Const("shape", Numbers<int64_t>(tf::DT_INT64, {2}, {-1, kLength})), found, Const("pad", Long(0)),
         splits},
        tf::DT_INT64,
        {Attr("Tindex", tf::DT_INT64), Attr("Tshape", tf::DT_INT64), Attr("num_row_partition_tensors", 1)});
    auto& types = (*into_->Mutable(into_->size() - 1)->mutable_attr())["row_partition_types"];
    types.mutable_list()->add_s("ROW_SPLITS");
    const std::string embedded =
        Op("GatherV2", "embedded",
           {Const("rows_of_words", Numbers<float>(tf::DT_FLOAT, {kRows, kWidth}, kTable)), dense,
            Const("axis1", Int(0))},
           {Attr("Tparams", tf::DT_FLOAT), Attr("Tindices", tf::DT_INT64), Attr("Taxis", tf::DT_INT32)});
    Typed("Mean", "mean", {embedded, Const("axis2", Ints({1}))}, tf::DT_FLOAT);
    (*f.mutable_ret())["scores"] = "mean:output:0";
    into_ = main;
    Op("StatefulPartitionedCall", "call", {"text", "table"},
       {Attr("f", "score", {}), Attr("Tout", std::vector<tf::DataType>{tf::DT_FLOAT})});
  }

  bool defined_;
  tf::SavedModel proto_;
  tf::MetaGraphDef& meta_ = *proto_.add_meta_graphs();
  google::protobuf::RepeatedPtrField<tf::NodeDef>* into_;
  BundleWriter checkpoint_;
};

std::string ModelDir() {
  const std::string dir = TestDir() + "/classifier";
  EXPECT_TRUE(TextModel().Write(dir));
  return dir;
}

class TextClassifier : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Definitions, TextClassifier, ::testing::Bool());

TEST_P(TextClassifier, GoesFromTextsToScoresInOneFile) {
  const std::string dir = TestDir() + "/classifier";
  ASSERT_TRUE(TextModel(GetParam()).Write(dir));
  converter::Options options;
  options.registry = StringsPlugin();
  const auto written = Convert(dir, options, "classifier");
  ASSERT_TRUE(written) << written.error().message;
  for (const auto& [op, count] : written->report.ops_after) EXPECT_FALSE(op.starts_with("Flex")) << op;
  const auto session = Open(written->path, StringsPlugin());
  ASSERT_TRUE(session) << session.error().message;
  const auto scores = Invoke(**session, {Texts({3, 1}, {"A good, GOOD film!", "bad", ""})});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].type, (Type{DType::kF32, {3, 2}}));
  EXPECT_THAT(ListOf<float>((*scores)[0]),
              ::testing::Pointwise(
                  ::testing::FloatNear(1e-6F),
                  {(0.5F + 2 + 2 + 0.25F) / 4, (0.5F - 1 - 1 + 0.25F) / 4, -0.5F, 0.25F, 0.0F, 0.0F}));
  const auto one = Invoke(**session, {Texts({1, 1}, {"bad bad bad bad bad"})});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_THAT(ListOf<float>((*one)[0]), ::testing::ElementsAre(-2, 1));
}

// The command, twice: each a process of its own.
TEST(TextFile, IsTheSameBytesFromASecondProcess) {
  const std::string dir = ModelDir();
  std::string first;
  for (const char* name : {"a.tflite", "b.tflite"}) {
    const std::string out = TestDir() + "/" + name;
    const std::string command = "FUSEBOX_PLUGIN_PATH='" FUSEBOX_BUILD_DIR "/plugins' '" FUSEBOX_BUILD_DIR
                                "/bin/fusebox' convert '" +
                                dir + "' -o '" + out + "' >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const auto bytes = MapFile(out);
    ASSERT_TRUE(bytes);
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (first.empty()) first = text;
    else EXPECT_EQ(first, text);
  }
}

TEST(TextFile, NamesTheMissingPlugin) {
  Config config;
  config.search_default_path = false;
  const auto bare = Registry::Create(config);
  ASSERT_TRUE(bare);
  converter::Options options;
  options.registry = *bare;
  const auto written = Convert(ModelDir(), options, "classifier");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message,
              HasSubstr("op StringLower (call/lower): no plugin here has a kernel for this string op "
                        "(fusebox.strings has the usual ones)"));
}

TEST(TextFile, RunsNowhereWithoutThePlugin) {
  converter::Options options;
  options.registry = StringsPlugin();
  const auto written = Convert(ModelDir(), options, "classifier");
  ASSERT_TRUE(written) << written.error().message;
  Config config;
  config.search_default_path = false;
  const auto opened = Open(written->path, *Registry::Create(config));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("StringLower"));
}

}  // namespace
}  // namespace fusebox::testing
