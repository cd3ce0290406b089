// SPDX-License-Identifier: Apache-2.0
#include "samples/models/lstm_function.h"
#include "samples/models/models.h"

namespace fusebox::samples {
namespace {

std::string Uuid(Random& random) {
  std::string uuid = "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx";
  for (char& c : uuid) {
    if (c == 'x') c = "0123456789abcdef"[static_cast<int>(random.Uniform(0, 16))];
  }
  return uuid;
}

// Values are drawn in a fixed order, so that a seed gives equal weights for all steps and states.
struct LstmVariables {
  VariableRef kernel, recurrent, bias, dense_kernel, dense_bias, state_h, state_c;
};

LstmVariables AddVariables(SavedModelBuilder& model, Random& random, const LstmOptions& o) {
  int64_t n = o.inputs;
  int64_t u = o.units;
  TensorValue kernel = random.Weights({n, 4 * u});
  TensorValue recurrent = random.Weights({o.independent ? 1 : u, 4 * u});
  TensorValue bias = random.Uniform({4 * u}, -0.2f, 0.2f);
  TensorValue dense_kernel = random.Weights({u, 1});
  TensorValue dense_bias = random.Uniform({1}, -0.2f, 0.2f);
  TensorValue state_h = random.Weights({n, u});
  TensorValue state_c = random.Weights({n, u});

  const std::string cell = "layer_with_weights-0/cell/";
  LstmVariables v;
  v.kernel = model.AddVariable("lstm/lstm_cell/kernel", kernel, cell + "kernel");
  v.recurrent = model.AddVariable("lstm/lstm_cell/recurrent_kernel", recurrent, cell + "recurrent_kernel");
  v.bias = model.AddVariable("lstm/lstm_cell/bias", bias, cell + "bias");
  if (o.dense_head) {
    v.dense_kernel = model.AddVariable("dense/kernel", dense_kernel, "layer_with_weights-1/kernel");
    v.dense_bias = model.AddVariable("dense/bias", dense_bias, "layer_with_weights-1/bias");
  }
  if (o.initial_state == LstmOptions::State::kComputed) {
    v.state_h = model.AddVariable("state_h/kernel", state_h, "layer_with_weights-2/kernel");
    v.state_c = model.AddVariable("state_c/kernel", state_c, "layer_with_weights-3/kernel");
  }
  return v;
}

// value[:, index] of a batch-major input, value[index] of a shape.
Ref SliceAt(FunctionBuilder& f, const Ref& value, int axis, int index, const Shape& shape) {
  TensorValue begin = axis ? Ints({0, index}) : Ints({index});
  TensorValue end = axis ? Ints({0, index + 1}) : Ints({index + 1});
  return f.Op("StridedSlice",
              {value, f.Const(begin, "strided_slice/stack"), f.Const(end, "strided_slice/stack_1"),
               f.Const(axis ? Ints({1, 1}) : Ints({1}), "strided_slice/stack_2")},
              shape,
              {Attr("begin_mask", axis ? 1 : 0), Attr("end_mask", axis ? 1 : 0),
               Attr("shrink_axis_mask", 1 << axis)});
}

Ref ZeroState(FunctionBuilder& f, const Ref& x, const LstmOptions& o) {
  Ref shape = f.Op("Shape", {x}, {3}, {Attr("out_type", tf::DT_INT32)});
  Ref batch = SliceAt(f, shape, 0, o.time_major ? 1 : 0, kScalar);
  Ref dims = f.Op("Pack", {batch, f.Const(Int(o.units), "zeros/packed/1")}, {2});
  return f.Op("Fill", {dims, f.Const(Float(0), "zeros/Const")}, {o.batch, o.units});
}

// A projection of the first time step.
Ref ComputedState(FunctionBuilder& f, const Ref& x, VariableRef kernel, const LstmOptions& o) {
  Ref first = SliceAt(f, x, o.time_major ? 0 : 1, 0, {o.batch, o.inputs});
  Ref projected = f.Op("MatMul", {first, f.Read(kernel)}, {o.batch, o.units});
  return f.Op("Tanh", {projected}, {o.batch, o.units});
}

Ref InitialState(FunctionBuilder& f, const Ref& x, VariableRef kernel, const char* name, Random& random,
                 const LstmOptions& o) {
  switch (o.initial_state) {
    case LstmOptions::State::kZeros: return ZeroState(f, x, o);
    case LstmOptions::State::kConstant:
      return f.Const(random.Uniform({o.batch, o.units}, -0.5f, 0.5f), std::string("initial_") + name);
    case LstmOptions::State::kComputed: return ComputedState(f, x, kernel, o);
    case LstmOptions::State::kInput: return f.Arg(name, tf::DT_FLOAT, {o.batch, o.units});
  }
  FUSEBOX_CHECK(false);
}

Status CheckOptions(const LstmOptions& o) {
  if (o.initial_state == LstmOptions::State::kConstant && o.batch < 1)
    return Invalid("a constant state requires a batch");
  if (o.last_step_only && o.return_sequences) return Invalid("last_step_only excludes return_sequences");
  return {};
}

}  // namespace

Status WriteLstm(const std::string& dir, uint64_t seed, const LstmOptions& options) {
  FUSEBOX_TRY(CheckOptions(options));
  LstmOptions o = options;
  bool user_state = o.initial_state == LstmOptions::State::kInput;
  if (user_state || o.return_sequences) o.dense_head = false;

  Random random(seed);
  SavedModelBuilder model;
  LstmVariables v = AddVariables(model, random, o);
  const FunctionBuilder& lstm = AddLstmFunction(model, o, Uuid(random));

  FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
  Shape shape = o.time_major ? Shape{o.steps, o.batch, o.inputs} : Shape{o.batch, o.steps, o.inputs};
  Ref x = f.Arg("x", tf::DT_FLOAT, o.unknown_rank ? Shape{} : shape);
  f.SetScope("sequential/lstm");
  Ref h = InitialState(f, x, v.state_h, "state_h", random, o);
  Ref c = InitialState(f, x, v.state_c, "state_c", random, o);
  auto read = [&](VariableRef variable) {
    Ref value = f.Read(variable);
    return f.Op("Identity", {value}, value.shape);
  };
  Ref kernel = read(v.kernel);
  Ref recurrent = read(v.recurrent);
  Ref bias = read(v.bias);
  std::vector<Ref> results = f.Call(lstm, {x, h, c, kernel, recurrent, bias});

  Ref output = results[o.return_sequences ? 1 : 0];
  if (o.dense_head) {
    f.SetScope("sequential/dense");
    Ref product = f.Op("MatMul", {output, f.Read(v.dense_kernel)}, {o.batch, 1});
    output = f.Op("BiasAdd", {product, f.Read(v.dense_bias)}, {o.batch, 1});
  }
  f.SetScope("");
  bool states = o.return_state || user_state;
  f.Return(states ? std::vector<Ref>{output, results[2], results[3]} : std::vector<Ref>{output});

  std::vector<std::string> inputs = {"x"};
  std::vector<std::string> outputs = {"output"};
  if (user_state) inputs.insert(inputs.end(), {"state_h", "state_c"});
  if (states) outputs.insert(outputs.end(), {"state_h", "state_c"});
  model.AddSignature("serving_default", f, inputs, outputs);
  return model.Write(dir);
}

}  // namespace fusebox::samples
