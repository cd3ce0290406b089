// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;

Status WriteCounter(const std::string& dir, uint64_t seed) {
  Random random(seed);
  SavedModelBuilder model;
  VariableRef counter = model.AddVariable("counter", Float(0), "counter", false);
  VariableRef scale = model.AddVariable("scale", Float(random.Uniform(1, 2)), "scale");

  FunctionBuilder& add = model.AddFunction("__inference_add");
  Ref increment = add.Arg("increment", tf::DT_FLOAT, kScalar);
  add.Assign("AssignAddVariableOp", counter, increment);
  Ref count = add.Read(counter);
  add.Return({count, add.Op("Mul", {count, add.Read(scale)}, kScalar)});
  model.AddSignature("serving_default", add, {"increment"}, {"count", "scaled"});

  FunctionBuilder& peek = model.AddFunction("__inference_peek");
  peek.Return({peek.Read(counter)});
  model.AddSignature("peek", peek, {}, {"count"});
  return model.Write(dir);
}

}  // namespace fusebox::samples
