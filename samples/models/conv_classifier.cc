// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;
namespace {

class Classifier {
 public:
  Classifier(SavedModelBuilder& model, FunctionBuilder& f, uint64_t seed)
      : model_(model), f_(f), random_(seed) {}

  Ref Conv(const Ref& x, const char* op, const std::string& name, const Shape& filter, const Shape& shape) {
    f_.SetScope(name);
    return f_.Op(op, {x, f_.Read(Variable(name + "/kernel", filter, -0.4f, 0.4f))}, shape,
                 {Attr("strides", std::vector<int64_t>{1, 1, 1, 1}), Attr("padding", "SAME")});
  }

  // Batch normalization as exported by Keras 3, from its statistics.
  Ref Normalize(const Ref& x, const std::string& name) {
    f_.SetScope(name);
    const Shape channels = {x.shape.dims().back()};
    const Ref mean = f_.Read(Variable(name + "/mean", channels, -0.3f, 0.3f));
    const Ref variance = f_.Read(Variable(name + "/variance", channels, 0.5f, 1.5f));
    const Ref gamma = f_.Read(Variable(name + "/gamma", channels, 0.8f, 1.2f));
    const Ref beta = f_.Read(Variable(name + "/beta", channels, -0.2f, 0.2f));
    const Ref deviation =
        f_.Op("Rsqrt", {f_.Op("AddV2", {variance, f_.Const(Float(0.001f))}, channels)}, channels);
    const Ref scale = f_.Op("Mul", {deviation, gamma}, channels);
    const Ref scaled = f_.Op("Mul", {f_.Op("Sub", {x, mean}, x.shape), scale}, x.shape);
    return f_.Op("AddV2", {scaled, beta}, x.shape);
  }

  Ref Pool(const Ref& x, const Shape& shape) {
    return f_.Op("MaxPool", {x}, shape,
                 {Attr("strides", std::vector<int64_t>{1, 2, 2, 1}),
                  Attr("ksize", std::vector<int64_t>{1, 2, 2, 1}), Attr("padding", "VALID")});
  }

  Ref Dense(const Ref& x, const Shape& kernel, const Shape& shape) {
    f_.SetScope("dense");
    const Ref product = f_.Op("MatMul", {x, f_.Read(Variable("dense/kernel", kernel, -0.1f, 0.1f))}, shape);
    return f_.Op("BiasAdd", {product, f_.Read(Variable("dense/bias", {kernel[1]}, -0.1f, 0.1f))}, shape);
  }

 private:
  VariableRef Variable(const std::string& name, const Shape& shape, float low, float high) {
    return model_.AddVariable(name, random_.Uniform(shape, low, high), name);
  }

  SavedModelBuilder& model_;
  FunctionBuilder& f_;
  Random random_;
};

}  // namespace

Status WriteConvClassifier(const std::string& dir, uint64_t seed) {
  SavedModelBuilder model(SavedModelBuilder::Exporter::kKeras3);
  FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
  Classifier net(model, f, seed);
  const Ref image = f.Arg("image", tf::DT_FLOAT, {-1, 16, 16, 3});
  Ref x = net.Conv(image, "Conv2D", "conv", {3, 3, 3, 24}, {-1, 16, 16, 24});
  x = f.Op("Relu6", {net.Normalize(x, "bn")}, x.shape);
  x = net.Conv(x, "DepthwiseConv2dNative", "depthwise", {3, 3, 24, 1}, {-1, 16, 16, 24});
  x = f.Op("Relu", {net.Normalize(x, "bn_1")}, x.shape);
  x = net.Conv(x, "Conv2D", "conv_1", {1, 1, 24, 32}, {-1, 16, 16, 32});
  x = net.Pool(f.Op("Relu", {net.Normalize(x, "bn_2")}, x.shape), {-1, 8, 8, 32});
  f.SetScope("flatten");
  x = f.Op("Reshape", {x, f.Const(Ints({-1, 2048}))}, {-1, 2048});
  const Ref logits = net.Dense(x, {2048, 10}, {-1, 10});
  const Ref probabilities = f.Op("Softmax", {logits}, {-1, 10});
  f.SetScope("");
  f.Return({probabilities});
  model.AddSignature("serving_default", f, {"image"}, {"probabilities"});
  return model.Write(dir);
}

}  // namespace fusebox::samples
