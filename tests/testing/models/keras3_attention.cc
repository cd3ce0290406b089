// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/keras3_attention.h"

#include "models/saved_model/saved_model_builder.h"

namespace fusebox::test_models {

using namespace models;
namespace {

constexpr int64_t kSteps = 6;
constexpr int64_t kWidth = 8;
constexpr int64_t kHeads = 2;
constexpr int64_t kHeadSize = 4;

// Keras EinsumDense with bias: the projections of a MultiHeadAttention.
class Projections {
 public:
  Projections(SavedModelBuilder& model, FunctionBuilder& f, uint64_t seed)
      : model_(model), f_(f), random_(seed) {}

  Ref Apply(const std::string& name, const char* equation, const Ref& x, const Shape& kernel,
            const Shape& bias, const Shape& shape) {
    const std::string path = "multi_head_attention/" + name;
    const VariableRef weights =
        model_.AddVariable(path + "/kernel", random_.Weights(kernel), path + "/kernel");
    const VariableRef offset =
        model_.AddVariable(path + "/bias", random_.Uniform(bias, -0.2f, 0.2f), path + "/bias");
    f_.SetScope("functional/" + path);
    const Ref product = Einsum(equation, x, f_.Read(weights), shape);
    return f_.Op("AddV2", {product, f_.Read(offset)}, shape);
  }

  Ref Einsum(const char* equation, const Ref& a, const Ref& b, const Shape& shape) {
    return f_.Op("Einsum", {a, b}, shape, {Attr("equation", equation)});
  }

 private:
  SavedModelBuilder& model_;
  FunctionBuilder& f_;
  Random random_;
};

}  // namespace

Status WriteKeras3Attention(const std::string& dir, uint64_t seed) {
  SavedModelBuilder model(SavedModelBuilder::Exporter::kKeras3);
  FunctionBuilder& f = model.AddFunction("__inference_function");
  Projections layer(model, f, seed);
  const Shape heads = {-1, kSteps, kHeads, kHeadSize};
  const Shape kernel = {kWidth, kHeads, kHeadSize};
  const Shape bias = {kHeads, kHeadSize};
  const Shape scores = {-1, kHeads, kSteps, kSteps};
  const Ref x = f.Arg("x", tf::DT_FLOAT, {-1, kSteps, kWidth});
  const Ref query = layer.Apply("query", "abc,cde->abde", x, kernel, bias, heads);
  const Ref key = layer.Apply("key", "abc,cde->abde", x, kernel, bias, heads);
  const Ref value = layer.Apply("value", "abc,cde->abde", x, kernel, bias, heads);
  f.SetScope("functional/multi_head_attention");
  const Ref scaled = f.Op("Mul", {query, f.Const(Float(0.5f), "Mul/y")}, heads);
  const Ref logits = layer.Einsum("aecd,abcd->acbe", key, scaled, scores);
  const Ref mixed = layer.Einsum("acbe,aecd->abcd", f.Op("Softmax", {logits}, scores), value, heads);
  const Ref output =
      layer.Apply("attention_output", "abcd,cde->abe", mixed, {kHeads, kHeadSize, kWidth}, {kWidth}, x.shape);
  f.SetScope("functional/add");
  const Ref sum = f.Op("AddV2", {x, output}, x.shape);
  f.SetScope("");
  f.Return({sum});
  for (const char* signature : {"serve", "serving_default"})
    model.AddSignature(signature, f, {"x"}, {"output"});
  return model.Write(dir);
}

}  // namespace fusebox::test_models
