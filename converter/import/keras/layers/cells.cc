// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layers/cells.h"

namespace fusebox::keras {
namespace {

// Values of the loop in the order in which it carries them: changing ones first, then invariants.
struct Carried {
  ValueId time, list, count, steps, kernel, recurrent, bias;
  std::vector<ValueId> states;
  ValueId previous = kNoValue,
          mask = kNoValue;  // where there is a mask: the last output, and the masks of all steps

  std::vector<ValueId> Changing() const {
    std::vector<ValueId> out = {time, list};
    out.insert(out.end(), states.begin(), states.end());
    if (mask != kNoValue) out.push_back(previous);
    return out;
  }
  std::vector<ValueId> Constant() const {
    std::vector<ValueId> out = {count, steps, kernel, recurrent, bias};
    if (mask != kNoValue) out.push_back(mask);
    return out;
  }
  std::vector<ValueId> All() const {
    std::vector<ValueId> out = Changing();
    const auto rest = Constant();
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }
  // The same roles for other values.
  static Carried From(const std::vector<ValueId>& values, size_t states, bool masked) {
    Carried out;
    size_t at = 0;
    out.time = values[at++];
    out.list = values[at++];
    for (size_t i = 0; i < states; ++i) out.states.push_back(values[at++]);
    if (masked) out.previous = values[at++];
    out.count = values[at++];
    out.steps = values[at++];
    out.kernel = values[at++];
    out.recurrent = values[at++];
    out.bias = values[at++];
    if (masked) out.mask = values[at++];
    return out;
  }
};

class Loop {
 public:
  Loop(LayerCall& call, const RecurrentSpec& spec) : call_(call), spec_(spec) {}

  // The composite's body. Its inputs have the types of the operands.
  std::string Body(const std::vector<Type>& types, bool masked) {
    Function& f = NewFunction("body");
    std::vector<ValueId> in;
    for (const Type& type : types) in.push_back(f.AddInput(type));
    Emitter e = EmitterOf(f);
    const size_t states = StateCount(spec_.kind);
    ValueId steps = spec_.time_major ? in[0] : e.Transpose(in[0], {1, 0, 2});
    ValueId mask = masked ? e.Op("ExpandDims", {e.Transpose(in.back(), {1, 0}), e.I32(2)}) : kNoValue;
    if (spec_.go_backwards) {
      steps = e.Op("ReverseV2", {steps, e.I32s({0})});
      if (masked) mask = e.Op("ReverseV2", {mask, e.I32s({0})});
    }
    Carried start;
    start.time = e.I32(0);
    start.count = e.SizeValue(e.size(steps, 0));
    start.states.assign(in.begin() + 1, in.begin() + 1 + static_cast<std::ptrdiff_t>(states));
    start.kernel = in[states + 1];
    start.recurrent = in[states + 2];
    start.bias = in[states + 3];
    start.steps = List(e, steps);
    if (masked) {
      start.mask = List(e, mask);
      start.previous = e.Op("ZerosLike", {start.states[0]});
    }
    const int64_t batch = e.dim(start.states[0], 0);
    start.list = e.Op("TensorListReserve",
                      {e.I32s({batch, spec_.units}), spec_.return_sequences ? start.count : e.I32(1)},
                      MakeAttrs("element_dtype", DType::kF32));
    if (e.ok()) f.value(start.list).type = {DType::kVariant, Shape::Scalar()};
    Finish(e, start);
    // Verification runs the body as a function of its own.
    for (size_t i = 0; i < f.inputs.size(); ++i) f.input_names.push_back("operand_" + std::to_string(i));
    for (size_t i = 0; i < f.outputs.size(); ++i) f.output_names.push_back("result_" + std::to_string(i));
    return f.name;
  }

 private:
  Function& NewFunction(const std::string& what) {
    std::string name = call_.layer().path;
    for (char& c : name)
      if (c == '/') c = '_';
    return call_.state().module.Add(name + "_" + what);
  }
  Emitter EmitterOf(Function& f) {
    return {call_.state().module, f, call_.state().registry, call_.state().status, call_.layer().path};
  }

  ValueId List(Emitter& e, ValueId tensor) {
    const ValueId list = e.Op("TensorListFromTensor", {tensor, e.I32s({e.dim(tensor, 1), e.dim(tensor, 2)})},
                              MakeAttrs("element_dtype", e.dtype(tensor)));
    if (e.ok()) e.function().value(list).type = {DType::kVariant, Shape::Scalar()};
    return list;
  }

  // Emits the loop and derives the layer's outputs from its results.
  void Finish(Emitter& e, const Carried& start) {
    const std::vector<ValueId> all = start.All();
    std::vector<Type> types;
    for (const ValueId v : all) types.push_back(e.type(v));
    const bool masked = start.mask != kNoValue;
    const std::string cond = Condition(types, masked), body = Step(types, start, masked);
    const auto results =
        e.Node(Op::kWhile, "", all, types,
               MakeAttrs("cond_subgraph_index", FunctionRef{cond}, "body_subgraph_index", FunctionRef{body}));
    const Carried end = Carried::From(results, start.states.size(), masked);
    const int64_t batch = e.dim(start.states[0], 0);
    const ValueId sequence = e.Op("TensorListStack", {end.list, e.I32s({batch, spec_.units})},
                                  MakeAttrs("element_dtype", DType::kF32));
    if (!e.ok()) return;
    Function& f = e.function();
    const int64_t steps = spec_.return_sequences ? e.dim(f.inputs[0], spec_.time_major ? 0 : 1) : 1;
    f.value(sequence).type = {DType::kF32, {steps, batch, spec_.units}};
    const ValueId last = e.Op("StridedSlice", {sequence, e.I32s({-1}), e.I32s({0}), e.I32s({1})},
                              MakeAttrs("end_mask", 1, "shrink_axis_mask", 1));
    f.outputs = {last, spec_.time_major ? sequence : e.Transpose(sequence, {1, 0, 2})};
    f.outputs.insert(f.outputs.end(), end.states.begin(), end.states.end());
  }

  std::string Condition(const std::vector<Type>& types, bool masked) {
    Function& f = NewFunction("cond");
    for (const Type& type : types) f.AddInput(type);
    Emitter e = EmitterOf(f);
    const Carried in = Carried::From(f.inputs, StateCount(spec_.kind), masked);
    f.outputs = {e.Op("Less", {in.time, in.count})};
    return f.name;
  }

  ValueId Item(Emitter& e, ValueId list, ValueId time, const Type& tensor) {
    if (!e.ok()) return kNoValue;
    const Shape shape = {tensor.shape[1], tensor.shape[2]};
    const ValueId item = e.Op("TensorListGetItem", {list, time, e.I32s(shape.dims())},
                              MakeAttrs("element_dtype", tensor.dtype));
    e.function().value(item).type = {tensor.dtype, shape};
    return item;
  }

  std::string Step(const std::vector<Type>& types, const Carried& start, bool masked) {
    Function& f = NewFunction("step");
    for (const Type& type : types) f.AddInput(type);
    Emitter e = EmitterOf(f);
    Carried in = Carried::From(f.inputs, start.states.size(), masked);
    const Type step{DType::kF32, {Shape::kUnknown, e.dim(in.states[0], 0), e.dim(in.kernel, 0)}};
    const ValueId x = Item(e, in.steps, in.time, step);
    LayerCall cell(call_.state(), e, call_.layer(), {});
    std::vector<ValueId> states = Cell(cell, in, x);
    ValueId output = states[0];
    if (masked) {
      const Type kept{DType::kBool, {Shape::kUnknown, e.dim(in.states[0], 0), 1}};
      const ValueId mask = Item(e, in.mask, in.time, kept);
      const ValueId otherwise = spec_.zero_output_for_mask ? e.Op("ZerosLike", {output}) : in.previous;
      output = e.Op("SelectV2", {mask, output, otherwise});
      for (size_t i = 0; i < states.size(); ++i)
        states[i] = e.Op("SelectV2", {mask, states[i], in.states[i]});
    }
    if (!e.ok()) return f.name;
    const ValueId slot = spec_.return_sequences ? in.time : e.I32(0);
    in.list = e.Op("TensorListSetItem", {in.list, slot, output}, MakeAttrs("element_dtype", DType::kF32));
    f.value(in.list).type = {DType::kVariant, Shape::Scalar()};
    in.time = e.Op("AddV2", {in.time, e.I32(1)});
    in.states = states;
    in.previous = output;
    f.outputs = in.All();
    return f.name;
  }

  ValueId Activated(LayerCall& c, const nlohmann::json& how, ValueId v) { return Activation(c, how, v); }

  std::vector<ValueId> Cell(LayerCall& c, const Carried& in, ValueId x) {
    switch (spec_.kind) {
      case CellKind::kLstm: return Lstm(c, in, x);
      case CellKind::kGru: return spec_.reset_after ? GruResetAfter(c, in, x) : GruResetBefore(c, in, x);
      case CellKind::kSimple: break;
    }
    Emitter& e = c.e();
    const ValueId sum = e.Op("BiasAdd", {e.Op("MatMul", {x, in.kernel}), in.bias});
    return {
        Activated(c, spec_.activation, e.Op("AddV2", {sum, e.Op("MatMul", {in.states[0], in.recurrent})}))};
  }

  std::vector<ValueId> Lstm(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.e();
    const ValueId sum =
        e.Op("AddV2", {e.Op("MatMul", {x, in.kernel}), e.Op("MatMul", {in.states[0], in.recurrent})});
    const auto gates =
        e.Ops("Split", {e.I32(1), e.Op("BiasAdd", {sum, in.bias})}, MakeAttrs("num_split", 4), 4);
    const auto gate = [&](size_t i) { return Activated(c, spec_.recurrent_activation, gates[i]); };
    const ValueId kept = e.Op("Mul", {gate(1), in.states[1]});
    const ValueId cell =
        e.Op("AddV2", {kept, e.Op("Mul", {gate(0), Activated(c, spec_.activation, gates[2])})});
    return {e.Op("Mul", {gate(3), Activated(c, spec_.activation, cell)}), cell};
  }

  ValueId Mixed(Emitter& e, ValueId z, ValueId old, ValueId candidate) {
    const ValueId rest = e.Op("Mul", {e.Op("Sub", {e.F32(1), z}), candidate});
    return e.Op("AddV2", {e.Op("Mul", {z, old}), rest});
  }

  // z, r, h of the input and of the state; r scales the state's part of the candidate.
  std::vector<ValueId> GruResetAfter(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.e();
    const ValueId h = in.states[0];
    const auto biases = e.Ops("Unpack", {in.bias}, MakeAttrs("axis", 0, "num", 2), 2);
    const auto split = [&](ValueId v, ValueId by, ValueId bias) {
      return e.Ops("Split", {e.I32(1), e.Op("BiasAdd", {e.Op("MatMul", {v, by}), bias})},
                   MakeAttrs("num_split", 3), 3);
    };
    const auto of_x = split(x, in.kernel, biases[0]), of_h = split(h, in.recurrent, biases[1]);
    const ValueId z = Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[0], of_h[0]}));
    const ValueId r = Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[1], of_h[1]}));
    const ValueId sum = e.Op("AddV2", {of_x[2], e.Op("Mul", {r, of_h[2]})});
    return {Mixed(e, z, h, Activated(c, spec_.activation, sum))};
  }

  // r scales the state before the product.
  std::vector<ValueId> GruResetBefore(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.e();
    const ValueId h = in.states[0];
    const auto of_x = e.Ops("Split", {e.I32(1), e.Op("BiasAdd", {e.Op("MatMul", {x, in.kernel}), in.bias})},
                            MakeAttrs("num_split", 3), 3);
    const auto by = e.Ops("Split", {e.I32(1), in.recurrent}, MakeAttrs("num_split", 3), 3);
    const ValueId z =
        Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[0], e.Op("MatMul", {h, by[0]})}));
    const ValueId r =
        Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[1], e.Op("MatMul", {h, by[1]})}));
    const ValueId sum = e.Op("AddV2", {of_x[2], e.Op("MatMul", {e.Op("Mul", {r, h}), by[2]})});
    return {Mixed(e, z, h, Activated(c, spec_.activation, sum))};
  }

  LayerCall& call_;
  const RecurrentSpec& spec_;
};

// The name of an activation. hard_sigmoid of Keras 3 differs from that of older versions.
std::string ActivationName(LayerCall& c, const nlohmann::json& how) {
  if (how.is_null()) return "linear";
  const nlohmann::json* name = &how;
  if (how.is_object() && how.contains("config") && how["config"].is_string()) name = &how["config"];
  if (!name->is_string()) return "custom";
  const auto text = name->get<std::string>();
  return text == "hard_sigmoid" && c.keras() >= 3 ? "hard_sigmoid_of_keras_3" : text;
}

}  // namespace

size_t StateCount(CellKind kind) { return kind == CellKind::kLstm ? 2 : 1; }
int64_t GateCount(CellKind kind) { return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1; }

RecurrentResults EmitRecurrent(LayerCall& c, const RecurrentSpec& spec, const RecurrentOperands& in) {
  if (!c.e().ok()) return {kNoValue, kNoValue, std::vector<ValueId>(StateCount(spec.kind), kNoValue)};
  std::vector<ValueId> operands = {in.inputs};
  operands.insert(operands.end(), in.states.begin(), in.states.end());
  operands.insert(operands.end(), {in.kernel, in.recurrent, in.bias});
  if (in.mask != kNoValue) operands.push_back(in.mask);
  std::vector<Type> types;
  for (const ValueId v : operands) types.push_back(c.e().type(v));
  const std::string body = Loop(c, spec).Body(types, in.mask != kNoValue);

  const int64_t batch = c.e().dim(in.states[0], 0);
  const int64_t steps = spec.return_sequences ? c.e().dim(in.inputs, spec.time_major ? 0 : 1) : 1;
  const Type state{DType::kF32, {batch, spec.units}};
  const Shape outputs = spec.time_major ? Shape{steps, batch, spec.units} : Shape{batch, steps, spec.units};
  std::vector<Type> results = {state, {DType::kF32, outputs}};
  results.insert(results.end(), StateCount(spec.kind), state);
  Attrs attrs = MakeAttrs("time_major", spec.time_major, "go_backwards", spec.go_backwards, "sequence",
                          spec.return_sequences, "activation", ActivationName(c, spec.activation));
  if (spec.kind != CellKind::kSimple)
    attrs.Set("recurrent_activation", ActivationName(c, spec.recurrent_activation));
  if (spec.kind == CellKind::kGru) attrs.Set("reset_after", spec.reset_after);
  if (in.mask != kNoValue) attrs.Set("zero_output_for_mask", spec.zero_output_for_mask);
  const char* name = spec.kind == CellKind::kLstm  ? "keras.lstm"
                     : spec.kind == CellKind::kGru ? "keras.gru"
                                                   : "keras.simple_rnn";
  const auto made = c.e().Node(Op::kStablehloComposite, name, operands, results, std::move(attrs), body);
  return {made[0], made[1], {made.begin() + 2, made.end()}};
}

}  // namespace fusebox::keras
