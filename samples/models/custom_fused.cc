// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;
namespace {

const FunctionBuilder& AddFusedFunction(SavedModelBuilder& model, const CustomFusedOptions& options,
                                        const Shape& shape) {
  FunctionBuilder& f = model.AddFunction("__inference_my_custom_fused_op");
  f.SetAttr(Attr("_implements", "my_custom_fused_op",
                 {Attr("tfl_fusable_op", true), Attr("example_option", options.example_option)}));
  Ref a = f.Arg("in1", tf::DT_FLOAT, shape);
  Ref b = f.Arg("in2", tf::DT_FLOAT, shape);
  if (options.real_body) {
    Ref factor = f.Const(Float(static_cast<float>(options.example_option)), "factor");
    f.Return({f.Op("Mul", {f.Op("AddV2", {a, b}, shape), factor}, shape), f.Op("Mul", {a, b}, shape)});
  } else {
    f.Return({f.Const(Zeros({1}), "first_output"), f.Const(Zeros({1}), "second_output")});
  }
  return f;
}

}  // namespace

Status WriteCustomFused(const std::string& dir, uint64_t seed, const CustomFusedOptions& options) {
  Random random(seed);
  SavedModelBuilder model;
  const Shape shape = {1, 26, 26, 1};
  std::array<VariableRef, 2> filters;
  for (int i = 0; i < 2; ++i) {
    std::string number = std::to_string(i);
    filters[i] = model.AddVariable("conv_" + number + "/kernel", random.Uniform({3, 3, 3, 1}, -0.5f, 0.5f),
                                   "conv_" + number + "/kernel");
  }
  const FunctionBuilder& fused = AddFusedFunction(model, options, shape);
  FunctionBuilder& f = model.AddFunction("__inference_call");
  Ref image = f.Arg("image", tf::DT_FLOAT, {1, 28, 28, 3});
  std::vector<Ref> convolved;
  for (VariableRef filter : filters) {
    convolved.push_back(f.Op("Conv2D", {image, f.Read(filter)}, shape,
                             {Attr("strides", std::vector<int64_t>{1, 1, 1, 1}), Attr("padding", "VALID")}));
  }
  f.Return(f.Call(fused, convolved));
  model.AddSignature("serving_default", f, {"image"}, {"output_0", "output_1"});
  return model.Write(dir);
}

}  // namespace fusebox::samples
