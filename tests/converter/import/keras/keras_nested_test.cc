// SPDX-License-Identifier: Apache-2.0
// Models as layers of models: their calls are counted from 1, since Keras counts the one that made them.
#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;

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

TEST(KerasNested, CallsOfKeras3CountFromOne) {
  json inner =
      Graph3().Input("ix", {nullptr, 2}).Layer("Dense", kDense, "d", {Graph3::Tensor("ix")}).Config();
  inner["name"] = inner["config"]["name"] = "inner";
  inner["inbound_nodes"] = {{{"args", {Graph3::Tensor("x")}}, {"kwargs", json::object()}}};
  json of_inner = Graph3::Tensor("inner");
  of_inner["config"]["keras_history"][1] = 1;
  json config = Graph3().Input("x", {1, 2}).Layer("ReLU", json::object(), "y", {of_inner}).Config();
  config["config"]["layers"].push_back(std::move(inner));
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, config, {{"layers/functional/layers/dense/vars/0", kKernel.value}});
  ExpectNear(RunFile(file, {Floats({1, 2}, {3, -4})}), {6, 0});
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
