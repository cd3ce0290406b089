// SPDX-License-Identifier: Apache-2.0
// Conditionals of TensorFlow 1 on whether a model trains, which it does not: a placeholder says so by its
// default.
#include <gmock/gmock.h>

#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;

// y = training ? x * 3 : x, as Keras wrote a Dropout in 2018.
struct OldModel {
  tf::SavedModel proto;
  tf::MetaGraphDef& meta = *proto.add_meta_graphs();

  explicit OldModel(bool training, bool feeds = false) {
    proto.set_saved_model_schema_version(1);
    meta.mutable_meta_info_def()->add_tags("serve");
    Node("Placeholder", "x", {}, {Attr("dtype", tf::DT_FLOAT)});
    Const("default", {tf::DT_BOOL, kScalar, std::string(1, training ? '\1' : '\0'), {}});
    Node("PlaceholderWithDefault", "training", {"default"},
         {Attr("dtype", tf::DT_BOOL), Attr("shape", kScalar)});
    Node("Switch", "cond/Switch", {"training", "training"}, {Attr("T", tf::DT_BOOL)});
    Node("Identity", "cond/switch_t", {"cond/Switch:1"}, {Attr("T", tf::DT_BOOL)});
    Node("Identity", "cond/pred_id", {"training"}, {Attr("T", tf::DT_BOOL)});
    Const("cond/three", models::Float(3)).add_input("^cond/switch_t");
    Node("Switch", "cond/mul/Switch", {"x", "cond/pred_id"}, {Attr("T", tf::DT_FLOAT)});
    Node("Mul", "cond/mul", {"cond/mul/Switch:1", "cond/three"}, {Attr("T", tf::DT_FLOAT)});
    Node("Switch", "cond/Switch_1", {"x", "cond/pred_id"}, {Attr("T", tf::DT_FLOAT)});
    Node("Merge", "cond/Merge", {"cond/Switch_1", "cond/mul"}, {Attr("T", tf::DT_FLOAT), Attr("N", 2)});
    Node("Neg", "y", {"cond/Merge"}, {Attr("T", tf::DT_FLOAT)});
    tf::SignatureDef& s = (*meta.mutable_signature_def())["serving_default"];
    Info((*s.mutable_inputs())["x"], "x:0", tf::DT_FLOAT, {2});
    if (feeds) Info((*s.mutable_inputs())["training"], "training:0", tf::DT_BOOL, kScalar);
    Info((*s.mutable_outputs())["y"], "y:0", tf::DT_FLOAT, {2});
  }

  static void Info(tf::TensorInfo& info, const std::string& name, tf::DataType dtype, const Shape& shape) {
    info.set_name(name);
    info.set_dtype(dtype);
    *info.mutable_tensor_shape() = ShapeProto(shape);
  }
  tf::NodeDef& Node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                    const std::vector<Attr>& attrs) {
    tf::NodeDef& node = *meta.mutable_graph_def()->add_node();
    node.set_op(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
    return node;
  }
  tf::NodeDef& Const(const std::string& name, const TensorValue& value) {
    return Node("Const", name, {}, {Attr("dtype", value.dtype), Attr("value", value)});
  }
  Result<Converted> Convert() const {
    const std::string dir = testing::FreshDir();
    FUSEBOX_TRY(WriteSavedModel(dir, proto, BundleWriter()));
    Conversion conversion = FromSavedModel(dir);
    conversion.options.registry = BuiltIn();
    return conversion.Convert();
  }
};

TEST(DeadBranches, GoWhereTheConditionIsConstant) {
  for (const bool training : {false, true}) {
    const auto converted = OldModel(training).Convert();
    ASSERT_TRUE(converted) << converted.error().message;
    const auto program = run::Program::Create(*converted->module, BuiltIn());
    ASSERT_TRUE(program) << program.error().message;
    const std::vector<Tensor> inputs = {Floats({2}, {1, 2})};
    const auto runner = run::Runner::Create(**program, 1);
    const auto out = (*runner)->Run(converted->module->signatures[0].function, inputs);
    ASSERT_TRUE(out) << out.error().message;
    const float sign = training ? -3.0f : -1.0f;
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(sign, 2 * sign));
  }
}

TEST(DeadBranches, AreNoOutputs) {
  for (const char* output : {"cond/Switch_1:1", "cond/mul:0"}) {
    OldModel model(false);
    OldModel::Info((*(*model.meta.mutable_signature_def())["serving_default"].mutable_outputs())["z"], output,
                   tf::DT_FLOAT, {2});
    const auto converted = model.Convert();
    ASSERT_FALSE(converted) << output;
    EXPECT_THAT(converted.error().message, HasSubstr("is in a dead branch"));
  }
}

TEST(DeadBranches, LiveWhereTheConditionIsAnInput) {
  const auto converted = OldModel(false, true).Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const auto program = run::Program::Create(*converted->module, BuiltIn());
  ASSERT_TRUE(program) << program.error().message;
  const auto runner = run::Runner::Create(**program, 1);
  for (const bool training : {false, true}) {
    const std::vector<Tensor> inputs = {
        {{DType::kBool, fusebox::Shape::Scalar()},
         Buffer::Of<uint8_t>(std::vector<uint8_t>{static_cast<uint8_t>(training)})},
        fusebox::converter::Floats({2}, {1, 2})};
    const auto out = (*runner)->Run(converted->module->signatures[0].function, inputs);
    ASSERT_TRUE(out) << out.error().message;
    const float sign = training ? -3.0f : -1.0f;
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(sign, 2 * sign));
  }
}

}  // namespace
}  // namespace fusebox::converter
