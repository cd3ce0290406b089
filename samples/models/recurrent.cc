// SPDX-License-Identifier: Apache-2.0
#include "samples/models/lstm_function.h"
#include "samples/models/masked.h"
#include "samples/models/recurrent_cells.h"

namespace fusebox::samples {
namespace {

using Options = RecurrentOptions;
using Merge = RecurrentOptions::Merge;

// One direction of the layer, with its variables.
struct Direction {
  std::string name;  // prefix of its state names: "", "forward_", "backward_"
  LayerShape shape;
  VariableRef kernel, recurrent, bias;
  std::vector<VariableRef> states;    // of a stateful layer
  std::vector<Ref> initial, results;  // results of the function
};

class RecurrentModel {
 public:
  RecurrentModel(const Options& options, uint64_t seed, Masks masks)
      : options_(options), masks_(masks), random_(seed) {}

  Status Write(const std::string& dir) {
    std::vector<Direction> directions = {Make("", options_.units, options_.go_backwards)};
    if (options_.merge != Merge::kNone) {
      directions = {
          Make("forward_", options_.units, false),
          Make("backward_", options_.backward_units ? options_.backward_units : options_.units, true)};
    }
    std::vector<const FunctionBuilder*> functions;
    for (const Direction& d : directions) functions.push_back(&AddFunction(d));

    FunctionBuilder& f = model_.AddFunction("__inference__wrapped_model");
    Ref x = f.Arg("x", tf::DT_FLOAT, directions[0].shape.input());
    f.SetScope("sequential/rnn");
    for (Direction& d : directions) AddStates(f, x, d);
    for (size_t i = 0; i < directions.size(); ++i) Call(f, x, *functions[i], directions[i]);
    std::vector<Ref> outputs = Outputs(f, directions);
    std::vector<std::string> names = {"output"};
    if (outputs.size() == 2) names = {"forward", "backward"};
    if (options_.return_state) {
      for (const Direction& d : directions) {
        for (int i = 0; i < States(); ++i) {
          outputs.push_back(d.results[2 + static_cast<size_t>(i)]);
          names.push_back(d.name + StateName(i));
        }
      }
    }
    f.SetScope("");
    f.Return(outputs);
    model_.AddSignature("serving_default", f, inputs_, names);
    return model_.Write(dir);
  }

 private:
  int States() const { return options_.cell == Options::Cell::kLstm ? 2 : 1; }
  static std::string StateName(int i) { return i == 0 ? "state_h" : "state_c"; }

  Direction Make(const std::string& name, int units, bool backwards) {
    const int64_t n = options_.inputs;
    const int64_t u = units;
    const int64_t columns = GatesOf(options_.cell) * u;
    const std::string layer = name.empty() ? "" : name + "layer/";
    const std::string path = "layer_with_weights-0/" + layer + "cell/";
    const std::string cell = name + "rnn/cell/";
    Direction d{.name = name};
    d.shape = {.batch = options_.batch,
               .steps = options_.steps,
               .inputs = options_.inputs,
               .units = units,
               .time_major = options_.time_major,
               .go_backwards = backwards,
               .last_step_only = options_.last_step_only,
               .masks = masks_};
    d.kernel = model_.AddVariable(cell + "kernel", random_.Weights({n, columns}), path + "kernel");
    d.recurrent = model_.AddVariable(cell + "recurrent_kernel", random_.Weights({u, columns}),
                                     path + "recurrent_kernel");
    const Shape bias = options_.cell == Options::Cell::kGru ? Shape{2, columns} : Shape{columns};
    if (options_.bias)
      d.bias = model_.AddVariable(cell + "bias", random_.Uniform(bias, -0.2f, 0.2f), path + "bias");
    for (int i = 0; options_.stateful && i < States(); ++i) {
      const Shape state = {options_.batch, u};
      const std::string number = i == 0 ? "Variable" : "Variable_1";
      d.states.push_back(model_.AddVariable(
          name + "rnn/" + number, options_.zero_states ? Zeros(state) : random_.Uniform(state, -0.5f, 0.5f),
          "layer_with_weights-0/" + layer + "states/" + std::to_string(i), false));
    }
    return d;
  }

  const FunctionBuilder& AddFunction(const Direction& d) {
    std::string uuid = "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx";
    for (char& c : uuid) {
      if (c == 'x') c = "0123456789abcdef"[static_cast<int>(random_.Uniform(0, 16))];
    }
    if (options_.cell == Options::Cell::kSimpleRnn) return AddSimpleRnnFunction(model_, options_, d.shape);
    if (IsGru(options_.cell)) return AddGruFunction(model_, options_, d.shape, uuid);
    LstmOptions lstm{.batch = d.shape.batch, .steps = d.shape.steps, .inputs = d.shape.inputs};
    lstm.units = d.shape.units;
    lstm.time_major = d.shape.time_major;
    lstm.go_backwards = d.shape.go_backwards;
    lstm.last_step_only = d.shape.last_step_only;
    if (options_.other_body) lstm.body = LstmOptions::Body::kFourGates;
    return AddLstmFunction(model_, lstm, uuid, masks_);
  }

  void AddStates(FunctionBuilder& f, const Ref& x, Direction& d) {
    for (int i = 0; i < States(); ++i) {
      if (options_.stateful) {
        d.initial.push_back(f.Read(d.states[static_cast<size_t>(i)]));
      } else if (options_.input_state) {
        inputs_.push_back(d.name + StateName(i));
        d.initial.push_back(f.Arg(inputs_.back(), tf::DT_FLOAT, d.shape.state()));
      } else {
        d.initial.push_back(ZeroState(f, x, d.shape));
      }
    }
  }

  static Ref ZeroState(FunctionBuilder& f, const Ref& x, const LayerShape& shape) {
    Ref sizes = f.Op("Shape", {x}, {3}, {Attr("out_type", tf::DT_INT32)});
    const int at = shape.time_major ? 1 : 0;
    Ref batch =
        f.Op("StridedSlice",
             {sizes, f.Const(Ints({at}), "strided_slice/stack"),
              f.Const(Ints({at + 1}), "strided_slice/stack_1"), f.Const(Ints({1}), "strided_slice/stack_2")},
             kScalar, {Attr("shrink_axis_mask", 1)});
    Ref dims = f.Op("Pack", {batch, f.Const(Int(shape.units), "zeros/packed/1")}, {2});
    return f.Op("Fill", {dims, f.Const(Float(0), "zeros/Const")}, shape.state());
  }

  // The mask of a Masking layer.
  static Ref MaskOf(FunctionBuilder& f, const Ref& x) {
    const Shape shape = x.shape;
    const Shape steps = {shape[0], shape[1], 1};
    const Ref any = f.Op(
        "Any", {f.Op("NotEqual", {x, f.Const(Float(0), "NotEqual/y")}, shape), f.Const(Ints({-1}), "axis")},
        steps, {Attr("keep_dims", true)});
    return f.Op("Squeeze", {any}, {shape[0], shape[1]}, {Attr("squeeze_dims", std::vector<int64_t>{-1})});
  }

  void Call(FunctionBuilder& f, const Ref& x, const FunctionBuilder& function, Direction& d) {
    std::vector<Ref> arguments = {x};
    arguments.insert(arguments.end(), d.initial.begin(), d.initial.end());
    arguments.push_back(f.Read(d.kernel));
    arguments.push_back(f.Read(d.recurrent));
    const Shape bias = function.args()[function.args().size() - (masks_ == Masks::kNone ? 1 : 2)].shape;
    arguments.push_back(options_.bias ? f.Read(d.bias) : f.Const(Zeros(bias), "zeros_bias"));
    if (masks_ != Masks::kNone) arguments.push_back(MaskOf(f, x));
    d.results = f.Call(function, arguments);
    for (size_t i = 0; i < d.states.size(); ++i) f.Assign("AssignVariableOp", d.states[i], d.results[2 + i]);
  }

  // The signature's outputs of one direction, or of both.
  std::vector<Ref> Outputs(FunctionBuilder& f, const std::vector<Direction>& directions) const {
    std::vector<Ref> parts;
    for (const Direction& d : directions) {
      Ref part = d.results[options_.return_sequences ? 1 : 0];
      if (options_.return_sequences && d.name == "backward_")
        part = f.Op("ReverseV2", {part, f.Const(Ints({options_.time_major ? 0 : 1}), "ReverseV2/axis")},
                    part.shape);
      parts.push_back(part);
    }
    if (parts.size() == 1 || options_.merge == Merge::kSeparate) return parts;
    Shape shape = parts[0].shape;
    switch (options_.merge) {
      case Merge::kSum: return {f.Op("AddV2", parts, shape)};
      case Merge::kMul: return {f.Op("Mul", parts, shape)};
      case Merge::kAverage:
        return {f.Op("RealDiv", {f.Op("AddV2", parts, shape), f.Const(Float(2), "truediv/y")}, shape)};
      default: break;
    }
    shape.dims().back() += parts[1].shape.dims().back();
    parts.push_back(f.Const(Int(options_.return_sequences ? 2 : 1), "concat/axis"));
    return {f.Op("ConcatV2", parts, shape, {Attr("N", 2)})};
  }

  const Options& options_;
  Masks masks_;
  Random random_;
  SavedModelBuilder model_;
  std::vector<std::string> inputs_ = {"x"};
};

Status Check(const Options& o) {
  if (o.stateful && (o.batch < 1 || o.input_state))
    return Invalid("a stateful layer requires a batch and its own states");
  if (o.merge != Merge::kNone && o.go_backwards) return Invalid("a bidirectional layer has no direction");
  const bool added = o.merge == Merge::kSum || o.merge == Merge::kMul || o.merge == Merge::kAverage;
  if (added && o.backward_units && o.backward_units != o.units)
    return Invalid("different units cannot be added");
  return {};
}

}  // namespace

Status WriteRecurrent(const std::string& dir, uint64_t seed, const RecurrentOptions& options) {
  return WriteMaskedRecurrent(dir, seed, options, Masks::kNone);
}

Status WriteMaskedRecurrent(const std::string& dir, uint64_t seed, const RecurrentOptions& options,
                            Masks masks) {
  FUSEBOX_TRY(Check(options));
  return RecurrentModel(options, seed, masks).Write(dir);
}

}  // namespace fusebox::samples
