// SPDX-License-Identifier: Apache-2.0
// Models as layers of models. Keras 2 counts their calls from 1, since it counts the one that made them.
#include <gmock/gmock.h>

#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const KerasWeight kKernel = {"kernel", Floats({2, 2}, {2, 0, 0, 3})};
const json kDense = {{"units", 2}, {"use_bias", false}};

json Inner2() { return Graph2().Input("ix", {nullptr, 2}).Layer("Dense", kDense, "d", {"ix"}).Config(); }

// Twice the inner model, and the difference of what it gives: calls `first` and `first` + 1.
json Twins2(json inner, int first) {
  json config = Graph2()
                    .Input("a", {1, 2})
                    .Input("b", {1, 2})
                    .Layer("Subtract", json::object(), "y", {"a", "b"})
                    .Config();
  json& layers = config["config"]["layers"];
  inner["name"] = inner["config"]["name"] = "inner";
  inner["inbound_nodes"] = json::parse(R"([[["a", 0, 0, {}]], [["b", 0, 0, {}]]])");
  const json none = json::object();
  layers[2]["inbound_nodes"] = {{{"inner", first, 0, none}, {"inner", first + 1, 0, none}}};
  layers.push_back(std::move(inner));
  return config;
}

TEST(KerasNested, CallsCountFromOne) {
  const Tensors inputs = {Floats({1, 2}, {3, 4}), Floats({1, 2}, {1, 2})};
  const KerasWeights weights = {{"inner", {kKernel}}};
  const json sequential = SequentialConfig({1, 2}, json::array({LayerEntry("Dense", kDense, "d")}));
  for (const int first : {0, 1}) {
    ExpectNear(RunModel({Twins2(Inner2(), first), weights}, inputs), {4, 6});
    ExpectNear(RunModel({Twins2(sequential, first), weights}, inputs), {4, 6});
  }
}

json Result3(const std::string& layer, int call, int tensor = 0) {
  json result = Graph3::Tensor(layer);
  result["config"]["keras_history"] = {layer, call, tensor};
  return result;
}

// A call on this argument.
json Call3(json argument) {
  return {{"args", json::array({std::move(argument)})}, {"kwargs", json::object()}};
}

json Functional3() {
  return Graph3().Input("ix", {nullptr, 2}).Layer("Dense", kDense, "d", {Graph3::Tensor("ix")}).Config();
}

json Sequential3() {
  json inner = SequentialConfig({1, 2}, json::array({LayerEntry("Dense", kDense, "d")}));
  inner["config"]["layers"][1]["module"] = "keras.layers";
  inner["module"] = "keras";
  return inner;
}

// Inputs a and b, layer `inner` with these calls, and y, which is ReLU of `argument`.
json Outer3(json inner, json calls, json argument, json outputs) {
  json config = Graph3()
                    .Input("a", {1, 2})
                    .Input("b", {1, 2})
                    .Layer("ReLU", json::object(), "y", json::array({std::move(argument)}))
                    .Config();
  inner["name"] = inner["config"]["name"] = "inner";
  inner["inbound_nodes"] = std::move(calls);
  config["config"]["layers"].push_back(std::move(inner));
  config["config"]["output_layers"] = std::move(outputs);
  return config;
}

Result<Tensors> Run3(const json& config) {
  const Tensors inputs = {Floats({1, 2}, {3, -4}), Floats({1, 2}, {-1, 2})};
  const std::string file = TestDir() + "/model.keras";
  const bool sequential = config["config"]["layers"][3]["class_name"] == "Sequential";
  WriteKeras(file, config,
             {{sequential ? "layers/sequential/layers/dense/vars/0" : "layers/functional/layers/dense/vars/0",
               kKernel.value}});
  const Result<Tensors> in_archive = RunFile(file, inputs);
  const Result<Tensors> legacy = RunModel({Graph3::Legacy(config), {{"inner", {kKernel}}}, "3.3.3"}, inputs);
  EXPECT_TRUE(legacy) << legacy.error().message;
  if (in_archive && legacy) {
    EXPECT_EQ(Values(legacy->at(0)), Values(in_archive->at(0)));
  }
  return in_archive;
}

void ExpectOutputs(const Result<Tensors>& got, const std::vector<std::vector<float>>& want) {
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(Values((*got)[i]), want[i]) << "output " << i;
}

// Calls of functional models count from 0 in arguments and from 1 in output_layers.
TEST(KerasNested, ModelsOfKeras3MayBeConsumedAndReturned) {
  const json calls = json::array({Call3(Result3("a", 0))});
  const json outputs = {{"y", 0, 0}, {"inner", 1, 0}};
  ExpectOutputs(Run3(Outer3(Functional3(), calls, Result3("inner", 0), outputs)), {{6, 0}, {6, -12}});
}

TEST(KerasNested, CallsOfKeras3CountFromZeroInArguments) {
  const json calls = json::array({Call3(Result3("a", 0)), Call3(Result3("b", 0))});
  const json y = json::array({{"y", 0, 0}});
  ExpectOutputs(Run3(Outer3(Functional3(), calls, Result3("inner", 0), y)), {{6, 0}});
  ExpectOutputs(Run3(Outer3(Functional3(), calls, Result3("inner", 1), y)), {{0, 6}});
}

TEST(KerasNested, BothCallsOfAModelOfKeras3MayBeUsed) {
  const json calls = json::array({Call3(Result3("a", 0)), Call3(Result3("b", 0))});
  const json outputs = {{"y", 0, 0}, {"inner", 2, 0}, {"inner", 1, 0}};
  for (const int call : {0, 1})
    ExpectOutputs(Run3(Outer3(Functional3(), calls, Result3("inner", call), outputs)),
                  {call == 0 ? std::vector<float>{6, 0} : std::vector<float>{0, 6}, {-2, 6}, {6, -12}});
}

// A model that is called on its own result.
TEST(KerasNested, ModelsOfKeras3MayFollowThemselves) {
  const json calls = json::array({Call3(Result3("a", 0)), Call3(Result3("inner", 0))});
  ExpectOutputs(Run3(Outer3(Functional3(), calls, Result3("inner", 1), {{"y", 0, 0}, {"inner", 2, 0}})),
                {{12, 0}, {12, -36}});
}

// In Keras 3, Sequential is no functional model.
TEST(KerasNested, CallsOfASequentialOfKeras3CountFromZero) {
  const json calls = json::array({Call3(Result3("a", 0)), Call3(Result3("b", 0))});
  const json outputs = {{"inner", 0, 0}, {"y", 0, 0}, {"inner", 1, 0}};
  ExpectOutputs(Run3(Outer3(Sequential3(), calls, Result3("inner", 1), outputs)),
                {{6, -12}, {0, 6}, {-2, 6}});
}

TEST(KerasNested, ModelsOfKeras3MayHaveSeveralInputsAndOutputs) {
  json inner = Graph3()
                   .Input("ix", {nullptr, 2})
                   .Input("iy", {nullptr, 2})
                   .Layer("Subtract", json::object(), "s",
                          json::array({json::array({Graph3::Tensor("ix"), Graph3::Tensor("iy")})}))
                   .Layer("Dense", kDense, "d", {Graph3::Tensor("s")})
                   .Config();
  inner["config"]["output_layers"] = {{"d", 0, 0}, {"s", 0, 0}};
  const json calls = json::array(
      {Call3({Result3("a", 0), Result3("b", 0)}), Call3({Result3("inner", 0, 1), Result3("a", 0)})});
  const json outputs = {{"inner", 2, 0}, {"inner", 2, 1}, {"y", 0, 0}, {"inner", 1, 0}, {"inner", 1, 1}};
  ExpectOutputs(Run3(Outer3(inner, calls, Result3("inner", 1, 1), outputs)),
                {{2, -6}, {1, -2}, {1, 0}, {8, -18}, {4, -6}});
}

// Keras 3.0 and 3.1 also count the calls outside of the model in arguments.
TEST(KerasNested, CallsOfKeras3OutsideOfTheModelAreSkipped) {
  const json y = json::array({{"y", 0, 0}});
  const json one = json::array({Call3(Result3("a", 0))});
  for (const int call : {1, 2})
    for (const json& inner : {Functional3(), Sequential3()})
      ExpectOutputs(Run3(Outer3(inner, one, Result3("inner", call), y)), {{6, 0}});
  const json two = json::array({Call3(Result3("a", 0)), Call3(Result3("inner", 1))});
  ExpectOutputs(Run3(Outer3(Functional3(), two, Result3("inner", 4), y)), {{12, 0}});
}

TEST(KerasNested, MissingCallsOfKeras3AreRefused) {
  const auto refusal = [](const json& argument, const json& outputs) {
    const json calls = json::array({Call3(Result3("a", 0)), Call3(Result3("b", 0))});
    const std::string file = TestDir() + "/model.h5";
    WriteH5(
        file,
        {Graph3::Legacy(Outer3(Functional3(), calls, argument, outputs)), {{"inner", {kKernel}}}, "3.3.3"});
    const Result<Tensors> got = RunFile(file, {});
    return got ? "no error" : got.error().message;
  };
  EXPECT_THAT(refusal(Result3("inner", 2), {{"y", 0, 0}, {"y", 0, 0}}),
              HasSubstr("layer inner (Functional): call 2 of it is referenced but missing"));
  EXPECT_THAT(refusal(Result3("inner", 0), {{"y", 0, 0}, {"inner", 3, 0}}),
              HasSubstr("layer inner (Functional): call 2 of it is referenced but missing"));
  EXPECT_THAT(refusal(Result3("inner", 0), {{"y", 0, 0}, {"inner", 0, 0}}),
              HasSubstr("call 0 of layer inner (Functional) is referenced; they count from 1"));
}

// The outputs of a whole model may be those of a model in it.
TEST(KerasNested, OutputsMayBeThoseOfAModel) {
  json config = Twins2(Inner2(), 1);
  config["config"]["output_layers"] = {{"inner", 2, 0}, {"inner", 1, 0}};
  ExpectNear(RunModel({config, {{"inner", {kKernel}}}}, {Floats({1, 2}, {3, 4}), Floats({1, 2}, {1, 2})}),
             {2, 6});
}

}  // namespace
}  // namespace fusebox::testing
