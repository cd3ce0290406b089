// SPDX-License-Identifier: Apache-2.0
// SavedModels of TensorFlow 1: variables in the main graph, in shards and in parts; frozen ones; its control
// flow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace fusebox::models;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

// A graph node by node; x [?,5] is there. Restore nodes bind the variables.
class Tf1Model {
 public:
  explicit Tf1Model(int shards = 1) : checkpoint(shards) {
    file_.set_saved_model_schema_version(1);
    meta_graph().mutable_meta_info_def()->add_tags("serve");
    Add("Placeholder", "x", {}, {Attr("dtype", tf::DT_FLOAT), Attr("shape", Shape{-1, 5})});
  }
  tf::NodeDef& Add(const char* op, const std::string& name, const std::vector<std::string>& inputs,
                   const std::vector<Attr>& attrs = {}) {
    tf::NodeDef& node = *meta_graph().mutable_graph_def()->add_node();
    node.set_op(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    (*node.mutable_attr())["T"].set_type(tf::DT_FLOAT);
    for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
    return node;
  }
  void AddVariable(const std::string& name, const Shape& shape, const char* key, const char* slice = "") {
    Add("VariableV2", name, {}, {Attr("dtype", tf::DT_FLOAT), Attr("shape", shape)});
    Add("Identity", name + "/read", {name});
    names_.push_back(name), keys_.push_back(key), slices_.push_back(slice);
  }
  void Sign(const char* key, const char* output) {
    tf::SignatureDef& signature = (*meta_graph().mutable_signature_def())[key];
    tf::TensorInfo& x = (*signature.mutable_inputs())["x"];
    x.set_name("x:0");
    x.set_dtype(tf::DT_FLOAT);
    *x.mutable_tensor_shape() = ShapeProto({-1, 5});
    tf::TensorInfo& y = (*signature.mutable_outputs())["y"];
    y.set_name(output);
    y.set_dtype(tf::DT_FLOAT);
    y.mutable_tensor_shape()->set_unknown_rank(true);
  }
  std::string Write() {
    if (!names_.empty()) {
      Add("Const", "save/names", {}, {Attr("dtype", tf::DT_STRING), Attr("value", Strings(keys_))});
      Add("Const", "save/slices", {}, {Attr("dtype", tf::DT_STRING), Attr("value", Strings(slices_))});
      Add("RestoreV2", "save/RestoreV2", {"save/Const", "save/names", "save/slices"});
      meta_graph().mutable_saver_def()->set_restore_op_name("save/restore_all");
      tf::NodeDef& all = Add("NoOp", "save/restore_all", {});
      for (size_t i = 0; i < names_.size(); ++i) {
        const std::string assign = "save/Assign_" + std::to_string(i);
        all.add_input("^" + assign);
        Add("Assign", assign, {names_[i], "save/RestoreV2:" + std::to_string(i)});
      }
    }
    const std::string dir = TestDir() + "/model";
    const Status written = WriteSavedModel(dir, file_, checkpoint);
    EXPECT_TRUE(written) << written.error().message;
    if (names_.empty()) std::filesystem::remove_all(dir + "/variables");
    return dir;
  }

  BundleWriter checkpoint;

 private:
  tf::MetaGraphDef& meta_graph() {
    return file_.meta_graphs_size() ? *file_.mutable_meta_graphs(0) : *file_.add_meta_graphs();
  }
  tf::SavedModel file_;
  std::vector<std::string> names_, keys_, slices_;
};

// 0, 1, 2, ...
TensorValue Counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(*shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return models::Floats(shape, values);
}

converter::Options V1Options() {
  converter::Options options;
  options.registry = *Plugins({});
  options.batch = 1;
  return options;
}

// What the file's signature makes of (1, 10, 100, 1000, 10000).
std::vector<float> Answer(const std::string& path, const std::string& signature = {}) {
  const auto session = Open(path, *Plugins({}), signature);
  EXPECT_TRUE(session) << session.error().message;
  const auto results = Invoke(**session, {Floats({1, 5}, {1, 10, 100, 1000, 10000})});
  EXPECT_TRUE(results) << results.error().message;
  const auto values = (*results)[0].data.As<float>();
  return {values.begin(), values.end()};
}

TEST(TensorFlow1, VariablesComeFromTheirShards) {
  Tf1Model model(3);
  model.AddVariable("a", {5, 2}, "key/a");
  model.AddVariable("b", {2}, "key/b");
  model.AddVariable("c", {2}, "key/c");
  model.checkpoint.Add("key/a", Counting({5, 2}));
  model.checkpoint.Add("key/b", models::Floats({2}, std::vector<float>{0.5f, 0.25f}));
  model.checkpoint.Add("key/c", models::Floats({2}, std::vector<float>{2, 4}));
  model.Add("MatMul", "product", {"x", "a/read"});
  model.Add("BiasAdd", "sum", {"product", "b/read"});
  model.Add("Mul", "scaled", {"product", "c/read"});
  model.Sign("serving_default", "sum:0");
  model.Sign("scaled", "scaled:0");
  const auto written = Convert(model.Write(), V1Options(), "out");
  ASSERT_OK(written);
  EXPECT_THAT(written->report.refused, IsEmpty());
  EXPECT_THAT(Answer(written->path, "serving_default"), ElementsAre(86420.5f, 97531.25f));
  EXPECT_THAT(Answer(written->path, "scaled"), ElementsAre(172840, 390124));
}

// Its op has several results; a file need not say so. Two units whose weights are zero, with biases of both
// kinds.
TEST(TensorFlow1, CudnnLayersStandInTheMainGraph) {
  const auto write = [](const char* direction) {
    Tf1Model model;
    std::vector<float> params(18);
    for (size_t i = 14; i < 18; ++i) params[i] = i < 16 ? 0.5F : 0.25F;
    model.Add("Const", "params", {},
              {Attr("dtype", tf::DT_FLOAT), Attr("value", models::Floats({18}, params))});
    model.Add("Const", "zeros", {}, {Attr("dtype", tf::DT_FLOAT), Attr("value", models::Zeros({5, 2}))});
    model.Add("Const", "zero", {}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(0))});
    model.Add("MatMul", "start", {"x", "zeros"});
    model.Add("ExpandDims", "steps", {"x", "zero"});
    model.Add("ExpandDims", "h", {"start", "zero"});
    model.Add("CudnnRNNV2", "rnn", {"steps", "h", "zero", "params"},
              {Attr("rnn_mode", "rnn_tanh"), Attr("direction", direction)});
    model.Add("Identity", "last", {"rnn:1"});
    model.Sign("serving_default", "last:0");
    return model.Write();
  };
  const auto written = Convert(write("unidirectional"), V1Options(), "out");
  ASSERT_OK(written);
  const float want = std::tanh(0.75F);
  EXPECT_THAT(Answer(written->path),
              ElementsAre(::testing::FloatNear(want, 1e-6F), ::testing::FloatNear(want, 1e-6F)));
  const auto both = Convert(write("bidirectional"), V1Options(), "both");
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("supported only with constant parameters"));
}

// The checkpoint holds one tensor, in parts of its own; the graph holds variables that are other parts of it.
TEST(TensorFlow1, PartitionedVariablesArePartsOfOneTensor) {
  Tf1Model model(2);
  model.AddVariable("w/part_0", {3, 4}, "w", "5 4 0,3:-");
  model.AddVariable("w/part_1", {2, 4}, "w", "5 4 3,2:0,4");
  model.AddVariable("v/part_0", {4, 1}, "v", "4 3 -:0,1");
  model.AddVariable("v/part_1", {4, 2}, "v", "4 3 0,4:1,2");
  model.checkpoint.AddPartitioned("w", Counting({5, 4}), 2);
  model.checkpoint.Add("v", Counting({4, 3}));
  model.Add("Const", "zero", {}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(0))});
  model.Add("Const", "one", {}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(1))});
  model.Add("ConcatV2", "w", {"w/part_0/read", "w/part_1/read", "zero"}, {Attr("N", 2)});
  model.Add("ConcatV2", "v", {"v/part_0/read", "v/part_1/read", "one"}, {Attr("N", 2)});
  model.Add("MatMul", "product", {"x", "w"});
  model.Add("MatMul", "again", {"product", "v"});
  model.Sign("first", "product:0");
  model.Sign("second", "again:0");
  const auto written = Convert(model.Write(), V1Options(), "out");
  ASSERT_OK(written);
  EXPECT_THAT(Answer(written->path, "first"), ElementsAre(172840, 183951, 195062, 206173));
  EXPECT_THAT(Answer(written->path, "second"), ElementsAre(3577782, 4335808, 5093834));
}

TEST(TensorFlow1, APartThatIsNotInItsTensorIsRefused) {
  const std::pair<const char*, const char*> slices[] = {
      {"5 4 3,3:-", "\"5 4 3,3:-\" is outside of its tensor"},
      {"5 4 0,2", "has fewer parts than dimensions"},
      {"5 4 0,2:-:-", "has more parts than dimensions"},
      {"5 four 0,2:-", "names no part of a tensor"},
      {"6 4 0,3:-", "holds [5,4], the variable is a part of [6,4]"},
      {"5 4 0,2:-", "holds float32[2,4], the variable is float32[3,4]"},
  };
  for (const auto& [slice, why] : slices) {
    Tf1Model model;
    model.AddVariable("w", {3, 4}, "w", slice);
    model.checkpoint.Add("w", Counting({5, 4}));
    model.Sign("serving_default", "w/read:0");
    const auto written = Convert(model.Write(), V1Options(), "out");
    ASSERT_FALSE(written) << slice;
    EXPECT_THAT(written.error().message, AllOf(HasSubstr("variable 'w'"), HasSubstr(why)));
  }
}

TEST(TensorFlow1, AFrozenGraphNeedsNoVariables) {
  Tf1Model model;
  model.Add("Const", "w", {}, {Attr("dtype", tf::DT_FLOAT), Attr("value", Counting({5, 2}))});
  model.Add("MatMul", "y", {"x", "w"});
  model.Sign("serving_default", "y:0");
  const std::string dir = model.Write();
  ASSERT_FALSE(std::filesystem::exists(dir + "/variables"));
  const auto written = Convert(dir, V1Options(), "out");
  ASSERT_OK(written);
  EXPECT_THAT(Answer(written->path), ElementsAre(86420, 97531));
}

// A conditional on the largest element.
TEST(TensorFlow1, ItsBranchesOnWhatIsComputedAreChosenInTheFile) {
  for (const float limit : {9.0f, 99999.0f}) {
    Tf1Model model;
    model.Add("Const", "limit", {}, {Attr("dtype", tf::DT_FLOAT), Attr("value", Float(limit))});
    model.Add("Const", "axes", {}, {Attr("dtype", tf::DT_INT32), Attr("value", Ints({0, 1}))});
    model.Add("Max", "largest", {"x", "axes"}, {Attr("Tidx", tf::DT_INT32)});
    model.Add("Less", "which", {"largest", "limit"});
    model.Add("Switch", "switch", {"x", "which"});
    model.Add("Neg", "no", {"switch:0"});
    model.Add("Relu", "yes", {"switch:1"});
    model.Add("Merge", "merge", {"no", "yes"}, {Attr("N", 2)});
    model.Sign("serving_default", "merge:0");
    const auto written = Convert(model.Write(), V1Options(), "out");
    ASSERT_OK(written);
    const float sign = limit < 10 ? -1.0f : 1.0f;
    EXPECT_THAT(Answer(written->path), ElementsAre(sign, 10 * sign, 100 * sign, 1000 * sign, 10000 * sign));
  }
}

// Doubles x until its largest element is above the limit.
TEST(TensorFlow1, ItsLoopsRunInTheFile) {
  Tf1Model model;
  model.Add("Enter", "enter", {"x"}, {Attr("frame_name", "loop")});
  model.Add("Merge", "merge", {"enter", "next"}, {Attr("N", 2)});
  model.Add("Const", "limit", {"^merge"}, {Attr("dtype", tf::DT_FLOAT), Attr("value", Float(35000))});
  model.Add("Const", "axes", {"^merge"}, {Attr("dtype", tf::DT_INT32), Attr("value", Ints({0, 1}))});
  model.Add("Max", "largest", {"merge", "axes"}, {Attr("Tidx", tf::DT_INT32)});
  model.Add("Less", "less", {"largest", "limit"});
  model.Add("LoopCond", "condition", {"less"});
  model.Add("Switch", "switch", {"merge", "condition"});
  model.Add("AddV2", "step", {"switch:1", "switch:1"});
  model.Add("NextIteration", "next", {"step"});
  model.Add("Exit", "exit", {"switch:0"});
  model.Sign("serving_default", "exit:0");
  const auto written = Convert(model.Write(), V1Options(), "out");
  ASSERT_OK(written);
  EXPECT_THAT(Answer(written->path), ElementsAre(4, 40, 400, 4000, 40000));
}

// Nothing is written, and the command names the node and the reason.
TEST(TensorFlow1, AMergeOfWhatIsAlwaysThereIsRefusedByName) {
  Tf1Model model;
  model.Add("Neg", "no", {"x"});
  model.Add("Relu", "yes", {"x"});
  model.Add("Merge", "merge", {"no", "yes"}, {Attr("N", 2)});
  model.Sign("serving_default", "merge:0");
  const std::string dir = model.Write(), out = TestDir() + "/none.tflite";
  const auto command = Fusebox({"convert", dir, "-o", out});
  EXPECT_EQ(command.status, 2) << command.err;
  EXPECT_THAT(command.err,
              AllOf(HasSubstr(dir), HasSubstr("merge (Merge)"), HasSubstr("the order in which")));
  EXPECT_FALSE(std::filesystem::exists(out));
}

// Weights are variables outside of the loop, as before a graph is frozen.
TEST(TensorFlow1, ItsLoopsReadVariables) {
  Tf1Model model;
  model.AddVariable("w", {5}, "w");
  model.checkpoint.Add("w", Counting({5}));
  model.Add("Enter", "weights", {"w/read"}, {Attr("frame_name", "loop"), Attr("is_constant", true)});
  model.Add("Const", "zero", {}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(0))});
  const Attr integer("T", tf::DT_INT32);
  model.Add("Enter", "enter", {"zero"}, {Attr("frame_name", "loop"), integer});
  model.Add("Enter", "enter_1", {"x"}, {Attr("frame_name", "loop")});
  model.Add("Merge", "merge", {"enter", "next"}, {Attr("N", 2), integer});
  model.Add("Merge", "merge_1", {"enter_1", "next_1"}, {Attr("N", 2)});
  model.Add("Const", "limit", {"^merge"}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(3))});
  model.Add("Less", "less", {"merge", "limit"}, {integer});
  model.Add("LoopCond", "condition", {"less"});
  model.Add("Switch", "switch", {"merge", "condition"}, {integer});
  model.Add("Switch", "switch_1", {"merge_1", "condition"});
  model.Add("Const", "one", {"^switch"}, {Attr("dtype", tf::DT_INT32), Attr("value", Int(1))});
  model.Add("AddV2", "step", {"switch:1", "one"}, {integer});
  model.Add("AddV2", "step_1", {"switch_1:1", "weights"});
  model.Add("NextIteration", "next", {"step"}, {integer});
  model.Add("NextIteration", "next_1", {"step_1"});
  model.Add("Exit", "exit", {"switch_1:0"});
  model.Sign("serving_default", "exit:0");
  const auto written = Convert(model.Write(), V1Options(), "out");
  ASSERT_OK(written);
  EXPECT_THAT(Answer(written->path), ElementsAre(1, 13, 106, 1009, 10012));
}

}  // namespace
}  // namespace fusebox::testing
