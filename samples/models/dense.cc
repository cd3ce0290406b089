// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;
namespace {

struct DenseLayer {
  VariableRef kernel, bias;
  int64_t units;
};

DenseLayer AddLayer(SavedModelBuilder& model, Random& random, int number, int64_t inputs, int64_t units) {
  std::string name = number == 0 ? "dense" : "dense_" + std::to_string(number);
  std::string path = "layer_with_weights-" + std::to_string(number);
  return {model.AddVariable(name + "/kernel", random.Weights({inputs, units}), path + "/kernel"),
          model.AddVariable(name + "/bias", random.Uniform({units}, -0.2f, 0.2f), path + "/bias"), units};
}

Ref Apply(FunctionBuilder& f, const DenseLayer& layer, const Ref& x) {
  Ref product = f.Op("MatMul", {x, f.Read(layer.kernel)}, {-1, layer.units});
  return f.Op("BiasAdd", {product, f.Read(layer.bias)}, {-1, layer.units});
}

Status WriteDenseAs(SavedModelBuilder::Exporter exporter, const std::string& dir, uint64_t seed) {
  Random random(seed);
  SavedModelBuilder model(exporter);
  DenseLayer first = AddLayer(model, random, 0, 8, 16);
  DenseLayer second = AddLayer(model, random, 1, 16, 12);
  DenseLayer third = AddLayer(model, random, 2, 12, 4);

  // Two signatures with their own functions and shared variables.
  for (bool logits : {false, true}) {
    FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
    Ref x = f.Arg("x", tf::DT_FLOAT, {-1, 8});
    f.SetScope("sequential/dense");
    Ref a = f.Op("Relu", {Apply(f, first, x)}, {-1, 16});
    f.SetScope("sequential/dense_1");
    Ref b = f.Op("Relu", {Apply(f, second, a)}, {-1, 12});
    f.SetScope("sequential/dense_2");
    Ref y = Apply(f, third, b);
    if (!logits) y = f.Op("Softmax", {y}, {-1, 4});
    f.SetScope("");
    f.Return({y});
    model.AddSignature(logits ? "logits" : "serving_default", f, {"x"},
                       {logits ? "logits" : "probabilities"});
  }
  return model.Write(dir);
}

}  // namespace

Status WriteDense(const std::string& dir, uint64_t seed) {
  return WriteDenseAs(SavedModelBuilder::Exporter::kTensorFlow, dir, seed);
}

Status WriteKeras3Dense(const std::string& dir, uint64_t seed) {
  return WriteDenseAs(SavedModelBuilder::Exporter::kKeras3, dir, seed);
}

Status WriteDenseStack(const std::string& dir, uint64_t seed, int layers, int64_t units) {
  Random random(seed);
  SavedModelBuilder model;
  std::vector<DenseLayer> stack;
  for (int i = 0; i < layers; ++i) stack.push_back(AddLayer(model, random, i, units, units));
  FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
  Ref x = f.Arg("x", tf::DT_FLOAT, {-1, units});
  for (int i = 0; i < layers; ++i) {
    f.SetScope("sequential/dense_" + std::to_string(i));
    x = f.Op("Relu", {Apply(f, stack[static_cast<size_t>(i)], x)}, {-1, units});
  }
  f.SetScope("");
  f.Return({x});
  model.AddSignature("serving_default", f, {"x"}, {"output"});
  return model.Write(dir);
}

}  // namespace fusebox::samples
