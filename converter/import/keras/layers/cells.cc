// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layers/cells.h"

namespace fusebox::keras {
namespace {

// Values of the loop in the order in which it carries them: changing ones first, then invariants.
struct Carried {
  ValueId time, list, count, steps, kernel, recurrent, bias;
  std::vector<ValueId> states;
  ValueId previous = kNoValue;  // where there is a mask: the last output
  ValueId mask = kNoValue;      // the masks of all steps

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

// Exchanges batch and time.
ValueId SwapFirstTwo(Emitter& e, ValueId v) {
  std::vector<int64_t> perm = {1, 0};
  for (int i = 2; i < e.rank(v); ++i) perm.push_back(i);
  return e.Transpose(v, perm);
}

// Dimensions without the first.
std::vector<int64_t> ItemDims(const Type& list) {
  const auto& dims = list.shape.dims();
  return {dims.begin() + (dims.empty() ? 0 : 1), dims.end()};
}

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
    ValueId steps = spec_.time_major ? in[0] : SwapFirstTwo(e, in[0]);
    ValueId mask = masked ? SwapFirstTwo(e, in.back()) : kNoValue;
    while (masked && e.ok() && e.rank(mask) < e.rank(steps))
      mask = e.Op("ExpandDims", {mask, e.I32(e.rank(mask))});
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
    if (!e.ok()) return f.name;
    step_ = Shape(ItemDims(e.type(steps)));
    step_.dims()[0] = e.dim(start.states[0], 0);
    if (masked) mask_step_ = Shape(ItemDims(e.type(mask)));
    start.list = e.Op("TensorListReserve",
                      {StateDims(e, start.states[0]), spec_.return_sequences ? start.count : e.I32(1)},
                      MakeAttrs("element_dtype", DType::kF32));
    if (e.ok()) f.value(start.list).type = {DType::kVariant, Shape::Scalar()};
    Finish(e, start);
    // Verification runs the body as a separate function.
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

  Type StateType(Emitter& e, ValueId state) const { return spec_.StateType(e.dim(state, 0)); }
  ValueId StateDims(Emitter& e, ValueId state) {
    const auto type = StateType(e, state);
    return e.I32s({type.shape.dims().begin(), type.shape.dims().end()});
  }

  ValueId List(Emitter& e, ValueId tensor) {
    const ValueId list = e.Op("TensorListFromTensor", {tensor, e.I32s(ItemDims(e.type(tensor)))},
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
    const std::string cond = Condition(types, masked);
    const std::string body = Step(types, start, masked);
    const auto results =
        e.Node(Op::kWhile, "", all, types,
               MakeAttrs("cond_subgraph_index", FunctionRef{cond}, "body_subgraph_index", FunctionRef{body}));
    const Carried end = Carried::From(results, start.states.size(), masked);
    const ValueId sequence = e.Op("TensorListStack", {end.list, StateDims(e, start.states[0])},
                                  MakeAttrs("element_dtype", DType::kF32));
    if (!e.ok()) return;
    Function& f = e.function();
    const int64_t steps = spec_.return_sequences ? e.dim(f.inputs[0], spec_.time_major ? 0 : 1) : 1;
    Type stacked = StateType(e, start.states[0]);
    stacked.shape.dims().insert(stacked.shape.dims().begin(), steps);
    f.value(sequence).type = std::move(stacked);
    const ValueId last = e.Op("StridedSlice", {sequence, e.I32s({-1}), e.I32s({0}), e.I32s({1})},
                              MakeAttrs("end_mask", 1, "shrink_axis_mask", 1));
    f.outputs = {last, spec_.time_major ? sequence : SwapFirstTwo(e, sequence)};
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

  ValueId Item(Emitter& e, ValueId list, ValueId time, const Type& item_type) {
    if (!e.ok()) return kNoValue;
    const auto& dims = item_type.shape.dims();
    const ValueId item = e.Op("TensorListGetItem", {list, time, e.I32s({dims.begin(), dims.end()})},
                              MakeAttrs("element_dtype", item_type.dtype));
    e.function().value(item).type = item_type;
    return item;
  }

  std::string Step(const std::vector<Type>& types, const Carried& start, bool masked) {
    Function& f = NewFunction("step");
    for (const Type& type : types) f.AddInput(type);
    Emitter e = EmitterOf(f);
    Carried in = Carried::From(f.inputs, start.states.size(), masked);
    const ValueId x = Item(e, in.steps, in.time, {DType::kF32, step_});
    LayerCall cell(call_.state(), e, call_.layer(), {});
    std::vector<ValueId> states = Cell(cell, in, x);
    ValueId output = states[0];
    if (masked) {
      const ValueId mask = Item(e, in.mask, in.time, {DType::kBool, mask_step_});
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
      case CellKind::kConvLstm: return ConvLstm(c, in, x);
      case CellKind::kSimple: break;
    }
    Emitter& e = c.emit();
    const ValueId sum = e.Op("BiasAdd", {e.Op("MatMul", {x, in.kernel}), in.bias});
    return {
        Activated(c, spec_.activation, e.Op("AddV2", {sum, e.Op("MatMul", {in.states[0], in.recurrent})}))};
  }

  std::vector<ValueId> Lstm(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.emit();
    const ValueId sum =
        e.Op("AddV2", {e.Op("MatMul", {x, in.kernel}), e.Op("MatMul", {in.states[0], in.recurrent})});
    return LstmGates(c, in, e.Op("BiasAdd", {sum, in.bias}));
  }

  // Each of the two convolutions computes all gates. The state's convolution neither strides nor dilates.
  std::vector<ValueId> ConvLstm(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.emit();
    const std::string_view op = spec_.window.space == 3 ? "Conv3D" : "Conv2D";
    Window same = spec_.window;
    same.strides.assign(same.strides.size(), 1);
    same.dilations.assign(same.dilations.size(), 1);
    same.padding = "SAME";
    const ValueId of_x = e.Op("BiasAdd", {Convolve(c, op, spec_.window, x, in.kernel), in.bias});
    return LstmGates(c, in, e.Op("AddV2", {of_x, Convolve(c, op, same, in.states[0], in.recurrent)}));
  }

  // From the sums of the gates i, f, c, o in the last dimension.
  std::vector<ValueId> LstmGates(LayerCall& c, const Carried& in, ValueId sums) {
    Emitter& e = c.emit();
    const auto gates = e.Ops("Split", {e.I32(e.rank(sums) - 1), sums}, MakeAttrs("num_split", 4), 4);
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
    Emitter& e = c.emit();
    const ValueId h = in.states[0];
    const auto biases = e.Ops("Unpack", {in.bias}, MakeAttrs("axis", 0, "num", 2), 2);
    const auto split = [&](ValueId v, ValueId by, ValueId bias) {
      return e.Ops("Split", {e.I32(1), e.Op("BiasAdd", {e.Op("MatMul", {v, by}), bias})},
                   MakeAttrs("num_split", 3), 3);
    };
    const auto of_x = split(x, in.kernel, biases[0]);
    const auto of_h = split(h, in.recurrent, biases[1]);
    const ValueId z = Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[0], of_h[0]}));
    const ValueId r = Activated(c, spec_.recurrent_activation, e.Op("AddV2", {of_x[1], of_h[1]}));
    const ValueId sum = e.Op("AddV2", {of_x[2], e.Op("Mul", {r, of_h[2]})});
    return {Mixed(e, z, h, Activated(c, spec_.activation, sum))};
  }

  // r scales the state before the product.
  std::vector<ValueId> GruResetBefore(LayerCall& c, const Carried& in, ValueId x) {
    Emitter& e = c.emit();
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
  Shape step_, mask_step_;  // of one step's input and mask
};

// Returns the name of an activation. hard_sigmoid of Keras 3 differs from hard_sigmoid of older versions.
std::string ActivationName(LayerCall& c, const nlohmann::json& how) {
  if (how.is_null()) return "linear";
  const nlohmann::json* name = &how;
  if (how.is_object() && how.contains("config") && how["config"].is_string()) name = &how["config"];
  if (!name->is_string()) return "custom";
  const auto text = name->get<std::string>();
  return text == "hard_sigmoid" && c.keras() >= 3 ? "hard_sigmoid_of_keras_3" : text;
}

const char* CompositeName(CellKind kind) {
  switch (kind) {
    case CellKind::kLstm: return "keras.lstm";
    case CellKind::kGru: return "keras.gru";
    case CellKind::kConvLstm: return "keras.conv_lstm";
    case CellKind::kSimple: break;
  }
  return "keras.simple_rnn";
}

Attrs CompositeAttrs(LayerCall& c, const RecurrentSpec& spec, bool masked) {
  Attrs attrs = MakeAttrs("time_major", spec.time_major, "go_backwards", spec.go_backwards, "sequence",
                          spec.return_sequences, "activation", ActivationName(c, spec.activation));
  if (spec.kind != CellKind::kSimple)
    attrs.Set("recurrent_activation", ActivationName(c, spec.recurrent_activation));
  if (spec.kind == CellKind::kGru) attrs.Set("reset_after", spec.reset_after);
  if (spec.kind == CellKind::kConvLstm) {
    attrs.Set("strides", spec.window.strides);
    attrs.Set("dilations", spec.window.dilations);
    attrs.Set("padding", spec.window.padding);
  }
  if (masked) attrs.Set("zero_output_for_mask", spec.zero_output_for_mask);
  return attrs;
}

bool IsLstm(CellKind kind) { return kind == CellKind::kLstm || kind == CellKind::kConvLstm; }

}  // namespace

size_t StateCount(CellKind kind) { return IsLstm(kind) ? 2 : 1; }
int64_t GateCount(CellKind kind) { return IsLstm(kind) ? 4 : kind == CellKind::kGru ? 3 : 1; }

Type RecurrentSpec::StateType(int64_t batch) const {
  std::vector<int64_t> dims = {batch};
  for (const Extent& extent : space) dims.push_back(extent.size);
  dims.push_back(units);
  return {DType::kF32, Shape(dims)};
}

RecurrentResults EmitRecurrent(LayerCall& c, const RecurrentSpec& spec, const RecurrentOperands& in) {
  if (!c.emit().ok()) return {kNoValue, kNoValue, std::vector<ValueId>(StateCount(spec.kind), kNoValue)};
  std::vector<ValueId> operands = {in.inputs};
  operands.insert(operands.end(), in.states.begin(), in.states.end());
  operands.insert(operands.end(), {in.kernel, in.recurrent, in.bias});
  if (in.mask != kNoValue) operands.push_back(in.mask);
  std::vector<Type> types;
  for (const ValueId v : operands) types.push_back(c.emit().type(v));
  const std::string body = Loop(c, spec).Body(types, in.mask != kNoValue);

  const int64_t steps = spec.return_sequences ? c.emit().dim(in.inputs, spec.time_major ? 0 : 1) : 1;
  const Type state = spec.StateType(c.emit().dim(in.states[0], 0));
  Type outputs = state;
  outputs.shape.dims().insert(outputs.shape.dims().begin() + (spec.time_major ? 0 : 1), steps);
  std::vector<Type> results = {state, std::move(outputs)};
  results.insert(results.end(), StateCount(spec.kind), state);
  const auto made = c.emit().Node(Op::kStablehloComposite, CompositeName(spec.kind), operands, results,
                                  CompositeAttrs(c, spec, in.mask != kNoValue), body);
  return {made[0], made[1], {made.begin() + 2, made.end()}};
}

}  // namespace fusebox::keras
