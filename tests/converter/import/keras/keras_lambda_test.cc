// SPDX-License-Identifier: Apache-2.0
// Lambda layers and activations whose function is stored by name.
#include <gmock/gmock.h>

#include "tests/converter/import/keras/keras_functions.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Named(const std::string& module, const std::string& name, const json& arguments = json::object()) {
  return {{"function", name}, {"function_type", "function"}, {"module", module}, {"arguments", arguments}};
}

Result<Tensors> Lambda2(const json& config, const Tensor& x = kX) {
  return RunModel({Graph2().Input("x", x.type.shape.dims()).Layer("Lambda", config, "y", {"x"}).Config(), {}},
                  {x});
}

Result<Tensors> Lambda3(const std::string& module, const std::string& name) {
  const json function = {
      {"module", module}, {"class_name", "function"}, {"config", name}, {"registered_name", "function"}};
  const std::string file = TestDir() + "/lambda.keras";
  WriteKeras(file,
             Graph3()
                 .Input("x", {1, 2, 2})
                 .Layer("Lambda", {{"function", function}, {"arguments", json::object()}}, "y",
                        {Graph3::Tensor("x")})
                 .Config(),
             {});
  return RunFile(file, {kX});
}

TEST(KerasLambda, OfFunctionsOfTensorFlow) {
  ExpectNear(Lambda2(Named("tensorflow.python.ops.gen_nn_ops", "relu")), {0, 2, 0.5F, 4});
  ExpectNear(Lambda2(Named("tensorflow.python.ops.math_ops", "reduce_mean", {{"axis", 1}})), {-0.25F, 3});
  const float a = std::sqrt(5.0F);
  const float b = std::sqrt(16.25F);
  ExpectNear(Lambda2(Named("tensorflow.python.ops.nn_impl", "l2_normalize", {{"axis", -1}})),
             {-1 / a, 2 / a, 0.5F / b, 4 / b});
  const auto wide = Lambda2(Named("tensorflow.python.ops.array_ops", "expand_dims_v2", {{"axis", -1}}));
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_EQ(ToString(wide->at(0).type), "f32[1,2,2,1]");
}

// Without an axis, TensorFlow normalizes over all elements.
TEST(KerasLambda, WithoutArgumentsHasTheFunctionsDefaults) {
  const float length = std::sqrt(21.25F);
  const std::vector<float> want = {-1 / length, 2 / length, 0.5F / length, 4 / length};
  ExpectNear(Lambda2(Named("tensorflow.python.ops.nn_impl", "l2_normalize")), want);
  ExpectNear(Lambda2(Named("keras.backend", "l2_normalize")), want);
  ExpectNear(Of2("math.l2_normalize", {{"axis", nullptr}}), want);
}

TEST(KerasLambda, ScalesPixelsForTheNetworksOfKeras) {
  const Tensor x = Floats({1, 1, 1, 3}, {0, 127.5F, 255});
  const auto scaled = [&](const char* module, const json& arguments = json::object()) {
    return Lambda2(Named(module, "preprocess_input", arguments), x);
  };
  ExpectNear(scaled("keras.applications.mobilenet_v2"), {-1, 0, 1});
  ExpectNear(scaled("tensorflow.python.keras.applications.vgg16"),
             {255 - 103.939F, 127.5F - 116.779F, -123.68F});
  ExpectNear(scaled("keras.src.applications.densenet"),
             {-0.485F / 0.229F, (0.5F - 0.456F) / 0.224F, (1 - 0.406F) / 0.225F});
  ExpectNear(scaled("keras.applications.efficientnet"), {0, 127.5F, 255});
  ExpectNear(scaled("keras.applications.imagenet_utils", {{"mode", "tf"}}), {-1, 0, 1});
}

TEST(KerasLambda, OfKeras3IsAnActivation) {
  ExpectNear(Lambda3("builtins", "relu"), {0, 2, 0.5F, 4});
  ExpectNear(Lambda3("keras.ops", "square"), {1, 4, 0.25F, 16});
  EXPECT_THAT(Lambda3("builtins", "square").error().message,
              HasSubstr("the Python function square, whose code is not in the file; save the model"));
}

TEST(KerasLambda, OfOtherCodeIsRefusedByName) {
  const auto why = [](const json& config) {
    const auto got = Lambda2(config);
    return got ? std::string() : got.error().message;
  };
  EXPECT_THAT(why(Named("__main__", "scale")), HasSubstr("the Python function scale of __main__"));
  EXPECT_THAT(why(Named("keras.backend", "expand_dims")), HasSubstr("expand_dims of keras.backend"));
  EXPECT_THAT(why(Named("tensorflow.python.ops.math_ops", "mystery")),
              HasSubstr("the function mystery is unsupported"));
  EXPECT_THAT(why(Named("tensorflow.python.ops.math_ops", "exp", {{"base", 2}})),
              HasSubstr("the argument base of exp"));
  EXPECT_THAT(why({{"function", {"4wEAAAA", nullptr, nullptr}}, {"function_type", "lambda"}}),
              HasSubstr("a Python function, whose code is not in the file"));
}

// As tf.sin is stored.
TEST(KerasLambda, ActivationsOfTensorFlowByName) {
  const std::string file = TestDir() + "/sine.h5";
  WriteH5(
      file,
      {SequentialConfig({1, 2}, json::array({LayerEntry("Activation", {{"activation", "sin"}}, "a")})), {}});
  converter::Options options;
  options.registry = Rnn();
  auto conversion = converter::FromKeras(file);
  conversion.options = options;
  const auto converted = conversion.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->report.notes,
              ::testing::Contains(HasSubstr("the activation sin is TensorFlow's function")));
  ExpectNear(RunFile(file, {Floats({1, 2}, {1, -2})}), {std::sin(1.0F), std::sin(-2.0F)});
}

}  // namespace
}  // namespace fusebox::testing
