// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;

Status WriteConvRelu(const std::string& dir, uint64_t seed, const ConvReluOptions& options) {
  Random random(seed);
  SavedModelBuilder model;
  const Shape shape = {1, 6, 6, 4};
  const Shape bias_shape = options.spatial_bias ? Shape{1, 1, 6, 4} : Shape{4};
  VariableRef filter =
      model.AddVariable("conv/kernel", random.Uniform({3, 3, 3, 4}, -0.5f, 0.5f), "conv/kernel");
  VariableRef bias = model.AddVariable("conv/bias", random.Uniform(bias_shape, -0.5f, 0.5f), "conv/bias");

  FunctionBuilder& f = model.AddFunction("__inference_call");
  Ref image = f.Arg("image", tf::DT_FLOAT, {1, 8, 8, 3});
  f.SetScope("conv");
  Ref convolved = f.Op("Conv2D", {image, f.Read(filter)}, shape,
                       {Attr("strides", std::vector<int64_t>{1, 1, 1, 1}), Attr("padding", "VALID")});
  Ref sum = f.Op(options.spatial_bias ? "AddV2" : "BiasAdd", {convolved, f.Read(bias)}, shape);
  Ref output = f.Op("Relu", {sum}, shape);
  f.SetScope("");
  if (options.second_consumer) {
    f.Return({output, sum});
    model.AddSignature("serving_default", f, {"image"}, {"output", "pre_activation"});
  } else {
    f.Return({output});
    model.AddSignature("serving_default", f, {"image"}, {"output"});
  }
  return model.Write(dir);
}

}  // namespace fusebox::samples
