// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: their weights in all stored formats, their states, and Bidirectional.
#include <algorithm>

#include "converter/import/keras/layers/conv_lstm.h"

namespace fusebox::keras {
namespace {

CellKind KindOf(const Layer& layer) {
  if (layer.class_name.starts_with("ConvLSTM")) return CellKind::kConvLstm;
  if (layer.class_name.ends_with("LSTM")) return CellKind::kLstm;
  return layer.class_name.ends_with("GRU") ? CellKind::kGru : CellKind::kSimple;
}
bool IsCudnn(const Layer& layer) { return layer.class_name.starts_with("CuDNN"); }

std::vector<WeightSpec> CellWeights(const Layer& layer) {
  std::vector<WeightSpec> out = {{"kernel", "cell/vars/0"}, {"recurrent_kernel", "cell/vars/1"}};
  if (IsCudnn(layer) || ConfigFlag(layer, "use_bias", true)) out.push_back({"bias", "cell/vars/2"});
  return out;
}

// Keras 2 reads zero_output_for_mask in dense layers only.
bool IgnoresZeroOutput(LayerCall& c, const RecurrentSpec& spec) {
  return spec.kind == CellKind::kConvLstm && c.keras() < 3;
}

RecurrentSpec SpecOf(LayerCall& c) {
  RecurrentSpec spec;
  spec.kind = KindOf(c.layer());
  spec.units = c.Int(spec.kind == CellKind::kConvLstm ? "filters" : "units");
  spec.activation = c.config().value("activation", nlohmann::json("tanh"));
  spec.recurrent_activation = c.config().value("recurrent_activation", nlohmann::json("sigmoid"));
  spec.reset_after = IsCudnn(c.layer()) || c.Bool("reset_after", false);
  spec.return_sequences = c.Bool("return_sequences", false);
  spec.time_major = c.Bool("time_major", false);
  spec.go_backwards = c.Bool("go_backwards", false);
  spec.zero_output_for_mask = !IgnoresZeroOutput(c, spec) && c.Bool("zero_output_for_mask", false);
  return spec;
}

// Keras 1: kernel, recurrent kernel and bias per gate; LSTM gates in the order i, c, f, o.
void GateByGate(LayerCall& c, const RecurrentSpec& spec, int64_t features, RecurrentOperands& to) {
  const std::vector<size_t> order =
      spec.kind == CellKind::kLstm ? std::vector<size_t>{0, 2, 1, 3} : std::vector<size_t>{0, 1, 2};
  std::vector<ValueId> kernels;
  std::vector<ValueId> recurrents;
  std::vector<ValueId> biases;
  for (const size_t gate : order) {
    kernels.push_back(c.Constant(c.WeightData(gate * 3, {features, spec.units}), "kernel"));
    recurrents.push_back(
        c.Constant(c.WeightData(gate * 3 + 1, {spec.units, spec.units}), "recurrent_kernel"));
    biases.push_back(c.Constant(c.WeightData(gate * 3 + 2, {spec.units}), "bias"));
  }
  to.kernel = c.emit().Concat(kernels, 1);
  to.recurrent = c.emit().Concat(recurrents, 1);
  to.bias = c.emit().Concat(biases, 0);
}

// cuDNN matrices are transposed per gate, and there are two biases, which are added except for a GRU.
void FromCudnn(LayerCall& c, const RecurrentSpec& spec, int64_t features, RecurrentOperands& to) {
  Emitter& e = c.emit();
  const int64_t gates = GateCount(spec.kind);
  const auto n = static_cast<size_t>(gates);
  const auto split = [&](ValueId v) {
    return e.Ops("Split", {e.I32(1), v}, MakeAttrs("num_split", gates), n);
  };
  const ValueId bias = c.Weight("bias", {2 * gates * spec.units});
  std::vector<ValueId> kernels = split(c.Weight("kernel", {features, gates * spec.units}));
  std::vector<ValueId> recurrents = split(c.Weight("recurrent_kernel", {spec.units, gates * spec.units}));
  for (ValueId& kernel : kernels)
    kernel = e.Transpose(e.Op("Reshape", {kernel, e.I32s({spec.units, features})}), {1, 0});
  for (ValueId& recurrent : recurrents) recurrent = e.Transpose(recurrent, {1, 0});
  to.kernel = e.Concat(kernels, 1);
  to.recurrent = e.Concat(recurrents, 1);
  const ValueId rows = e.Op("Reshape", {bias, e.I32s({2, gates * spec.units})});
  to.bias = spec.kind == CellKind::kGru ? rows : e.Op("Sum", {rows, e.I32s({0})});
}

void ReadWeights(LayerCall& c, const RecurrentSpec& spec, RecurrentOperands& to) {
  const int64_t features = c.emit().dim(to.inputs, -1);
  const int64_t gates = GateCount(spec.kind);
  const int64_t columns = gates * spec.units;
  if (c.emit().ok() && features < 0)
    c.emit().Refuse("its input is " + ToString(c.emit().type(to.inputs)) +
                    ", whose number of features is unknown");
  if (!c.emit().ok()) return;
  if (spec.units < 1 || spec.units > (1 << 24))
    return c.emit().Reject("it has " + std::to_string(spec.units) + " units");
  if (spec.kind == CellKind::kConvLstm) return ReadConvLstmWeights(c, spec, to);
  if (IsCudnn(c.layer())) return FromCudnn(c, spec, features, to);
  if (gates > 1 && c.weight_count() == static_cast<size_t>(gates) * 3)
    return GateByGate(c, spec, features, to);
  to.kernel = c.Weight("kernel", {features, columns});
  to.recurrent = c.Weight("recurrent_kernel", {spec.units, columns});
  const bool two = spec.kind == CellKind::kGru && spec.reset_after;
  const std::vector<int64_t> shape = two ? std::vector<int64_t>{2, columns} : std::vector<int64_t>{columns};
  if (!c.emit().ok()) return;  // sizes are now checked against the weights
  if (c.Bool("use_bias", true)) {
    to.bias = c.Weight("bias", shape);
  } else {
    const std::vector<float> zeros(static_cast<size_t>(columns) * (two ? 2 : 1), 0);
    to.bias = c.Constant({{DType::kF32, Shape(shape)}, Buffer::Of<float>(zeros)}, c.layer().path + "/bias");
  }
}

ValueId Zeros(LayerCall& c, const RecurrentSpec& spec, ValueId inputs) {
  const Extent batch = c.emit().size(inputs, spec.time_major ? 1 : 0);
  std::vector<Extent> shape = {batch};
  shape.insert(shape.end(), spec.space.begin(), spec.space.end());
  shape.push_back(Extent{spec.units});
  const ValueId zeros = c.emit().Op("Fill", {c.emit().ShapeValue(shape), c.emit().F32(0)});
  if (c.emit().ok()) c.emit().function().value(zeros).type = spec.StateType(batch.size);
  return zeros;
}

// A variable that keeps a state between calls; it starts with zeros.
ValueId StateVariable(LayerCall& c, const RecurrentSpec& spec, ValueId inputs, size_t number,
                      ValueId& value) {
  const int64_t batch = c.emit().dim(inputs, spec.time_major ? 1 : 0);
  const Type type = spec.StateType(batch);
  if (c.emit().ok() && (batch < 1 || !type.shape.is_static()))
    c.emit().Refuse("it is stateful, but the size of its state, " + ToString(type) +
                    ", is unknown; save the model with a fixed batch_shape");
  if (!c.emit().ok()) return kNoValue;
  fusebox::Variable made;
  made.name = c.layer().path + (number == 0 ? "/Variable" : "/Variable_" + std::to_string(number));
  made.type = type;
  const auto bytes = ByteSize(made.type);
  if (!bytes || *bytes > (size_t{1} << 28)) {
    c.emit().Reject("its states of " + ToString(made.type) + " are too large");
    return kNoValue;
  }
  made.initial = Buffer::Make(*bytes, [](std::span<std::byte>) {});
  Attrs attrs = MakeAttrs("shared_name", made.name);
  if (!c.state().module.FindVariable(made.name)) c.state().module.variables.push_back(std::move(made));
  const Type resource{DType::kResource, Shape::Scalar()};
  const ValueId handle = c.emit().Node(Op::kVarHandle, "", {}, {resource}, std::move(attrs))[0];
  value = c.emit().Node(Op::kReadVariable, "", {handle}, {type}, {})[0];
  return handle;
}

std::vector<ValueId> GivenStates(LayerCall& c) {
  std::vector<ValueId> out;
  for (size_t i = 1; i < c.inputs().size(); ++i) out.push_back(c.in(i));
  const std::function<void(const Given&)> collect = [&](const Given& given) {
    if (const auto* flow = std::get_if<Flow>(&given.value)) out.push_back(flow->value);
    if (const auto* list = std::get_if<std::vector<Given>>(&given.value))
      for (const Given& item : *list) collect(item);
  };
  if (const Given* given = c.Keyword("initial_state"); given && out.empty()) collect(*given);
  if (c.keras() >= 3 && c.args().size() > 1 && out.empty()) collect(c.args()[1]);
  return out;
}

ValueId MaskOf(LayerCall& c) {
  const ValueId mask = c.mask();
  if (mask == kNoValue) return mask;
  if (c.Bool("time_major", false)) c.emit().Refuse("a mask with time_major");
  return mask;
}

RecurrentResults RunCell(LayerCall& c, const RecurrentSpec& spec, ValueId inputs, std::vector<ValueId> states,
                         ValueId mask) {
  RecurrentOperands in;
  in.inputs = inputs;
  in.mask = mask;
  const int rank = 3 + spec.window.space;
  if (c.emit().rank(inputs) != rank && c.emit().ok())
    c.emit().Reject("its input is " + ToString(c.emit().type(inputs)) + ", expected " + std::to_string(rank) +
                    " dimensions");
  ReadWeights(c, spec, in);
  const size_t count = StateCount(spec.kind);
  std::vector<ValueId> handles;
  if (states.empty() && c.Bool("stateful", false)) {
    states.assign(count, kNoValue);
    for (size_t i = 0; i < count; ++i) handles.push_back(StateVariable(c, spec, inputs, i, states[i]));
  } else if (states.empty()) {
    states.assign(count, Zeros(c, spec, inputs));
  }
  if (states.size() != count && c.emit().ok())
    c.emit().Reject("it has " + std::to_string(states.size()) + " initial states, expected " +
                    std::to_string(count));
  in.states = std::move(states);
  const RecurrentResults out = EmitRecurrent(c, spec, in);
  for (size_t i = 0; i < handles.size(); ++i)
    c.emit().Node(Op::kAssignVariable, "", {handles[i], out.states[i]}, {}, {});
  return out;
}

// One layer on inputs and states in its own data format.
RecurrentResults RunLayer(LayerCall& c, const RecurrentSpec& spec, ValueId inputs,
                          std::vector<ValueId> states, ValueId mask) {
  if (spec.kind != CellKind::kConvLstm) return RunCell(c, spec, inputs, std::move(states), mask);
  const ConvLstmForm form(c, spec, inputs, mask);
  for (ValueId& state : states) state = ChannelsLast(c, state);
  return form.Back(RunCell(c, form.spec(), form.inputs(), std::move(states), mask));
}

void Recurrent(LayerCall& c) {
  const RecurrentSpec spec = SpecOf(c);
  const ValueId mask = MaskOf(c);
  const RecurrentResults out = RunLayer(c, spec, c.in(), GivenStates(c), mask);
  if (spec.return_sequences) c.AddOutput(out.outputs, mask);
  else c.AddOutput(out.last);
  if (c.Bool("return_state", false))
    for (const ValueId state : out.states) c.AddOutput(state);
}

ValueId Merged(LayerCall& c, const std::string& mode, ValueId a, ValueId b) {
  if (mode == "concat") return c.emit().Concat({a, b}, c.emit().rank(a) - 1);
  if (mode == "sum") return c.emit().Op("AddV2", {a, b});
  if (mode == "mul") return c.emit().Op("Mul", {a, b});
  if (mode == "ave") return c.emit().Op("Mul", {c.emit().Op("AddV2", {a, b}), c.emit().F32(0.5)});
  c.emit().Refuse("merge_mode " + mode);
  return kNoValue;
}

// Runs two layers over one input, one of them backwards; that one's sequence is reversed again.
void Bidirectional(LayerCall& c) {
  const ValueId x = c.in();
  const ValueId mask = MaskOf(c);
  const std::vector<ValueId> given = GivenStates(c);
  std::vector<ValueId> results;
  std::vector<ValueId> states;
  bool sequences = false;
  bool return_state = false;
  for (size_t side = 0; side < 2; ++side) {
    const Layer& layer = *c.layer().wrapped[side];
    if (layer.weights.empty() || !FindLayer(layer.class_name) ||
        FindLayer(layer.class_name)->build != Recurrent)
      return c.emit().Refuse("it wraps a " + layer.class_name +
                             "; LSTM, GRU, SimpleRNN and ConvLSTM are supported");
    c.emit().SetLayer(layer.path);
    LayerCall inner(c.state(), c.emit(), layer, {});
    RecurrentSpec spec = SpecOf(inner);
    // Keras overrides the layers' own setting, so that merged outputs are correct at masked steps.
    if (!c.state().archive.multi_backend() && !IgnoresZeroOutput(c, spec))
      spec.zero_output_for_mask = spec.return_sequences;
    const auto half = static_cast<std::ptrdiff_t>(given.size() / 2);
    std::vector<ValueId> own(given.begin() + (side ? half : 0), side ? given.end() : given.begin() + half);
    const RecurrentResults out = RunLayer(inner, spec, x, std::move(own), mask);
    sequences = spec.return_sequences;
    return_state = inner.Bool("return_state", false);
    ValueId y = sequences ? out.outputs : out.last;
    if (side == 1 && sequences) y = c.emit().Op("ReverseV2", {y, c.emit().I32s({spec.time_major ? 0 : 1})});
    results.push_back(y);
    states.insert(states.end(), out.states.begin(), out.states.end());
  }
  c.emit().SetLayer(c.layer().path);
  const ValueId passed = sequences ? mask : kNoValue;
  if (c.config().contains("merge_mode") && c.config()["merge_mode"].is_null()) {
    c.AddOutput(results[0], passed);
    c.AddOutput(results[1], passed);
  } else {
    c.AddOutput(Merged(c, c.Str("merge_mode", "concat"), results[0], results[1]), passed);
  }
  if (return_state)
    for (const ValueId state : states) c.AddOutput(state);
}

}  // namespace

std::span<const LayerRow> RecurrentLayers() {
  static constexpr LayerRow kTable[] = {
      {"LSTM", Recurrent, CellWeights, MaskRule::kOwn},
      {"GRU", Recurrent, CellWeights, MaskRule::kOwn},
      {"SimpleRNN", Recurrent, CellWeights, MaskRule::kOwn},
      {"CuDNNLSTM", Recurrent, CellWeights, MaskRule::kOwn},
      {"CuDNNGRU", Recurrent, CellWeights, MaskRule::kOwn},
      {"ConvLSTM1D", Recurrent, CellWeights, MaskRule::kOwn},
      {"ConvLSTM2D", Recurrent, CellWeights, MaskRule::kOwn},
      {"ConvLSTM3D", Recurrent, CellWeights, MaskRule::kOwn},
      {"Bidirectional", Bidirectional, nullptr, MaskRule::kOwn},
  };
  return kTable;
}

}  // namespace fusebox::keras
