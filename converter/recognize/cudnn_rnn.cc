// SPDX-License-Identifier: Apache-2.0
// CudnnRNN, V2 and V3 (models that were exported where a GPU was) become a recurrent layer's composite: their
// packed parameters are its weights. Its body is a loop over the steps, made here.
#include <algorithm>
#include <array>
#include <utility>

#include "converter/recognize/rnn/layer.h"
#include "converter/recognize/rnn/scan.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

struct Mode {
  std::string_view name;
  Cell::Kind kind;
  const char* activation;
  std::array<int64_t, 4> order;  // of the composite's gates among the packed ones
  int64_t gates;
};
constexpr Mode kModes[] = {{"lstm", Cell::Kind::kLstm, "tanh", {0, 1, 2, 3}, 4},
                           {"gru", Cell::Kind::kGru, "tanh", {1, 0, 2}, 3},
                           {"rnn_tanh", Cell::Kind::kSimpleRnn, "tanh", {0}, 1},
                           {"rnn_relu", Cell::Kind::kSimpleRnn, "relu", {0}, 1}};

class Unpacker {
 public:
  Unpacker(const View& view, const Node& node) : in_(view), node_(node), made_(view), write_(made_.f()) {
    write_.SetLocation(node.location);
  }

  // Each layer, in each direction, becomes a composite; the next layer reads the results of both.
  Result<Region> Replace() {
    FUSEBOX_TRY(Check());
    FUSEBOX_TRY(CheckLengths());
    FUSEBOX_TRY(CheckParameters());
    const bool lstm = mode_->kind == Cell::Kind::kLstm;
    const std::vector<ValueId> h = States(1);
    const std::vector<ValueId> c = lstm ? States(2) : std::vector<ValueId>();
    std::vector<ValueId> final_h;
    std::vector<ValueId> final_c;
    std::vector<ValueId> results;
    Layer layer;
    layer.in = time_major_ && parts_ == 1 ? LayoutOf(in_, node_.operands[0])
                                          : SequenceLayout{node_.operands[0], time_major_, false};
    layer.in.inputs = made_.Input(layer.in.inputs);
    layer.weights = &made_.f();
    for (size_t i = 0; i < h.size(); ++i) {
      const auto part = static_cast<int64_t>(i);
      const bool back = part % directions_ == 1;
      layer.location = node_.location;
      if (parts_ > 1) layer.location.name += "/" + std::to_string(part);
      layer.cell = CellOf(part);
      if (parts_ > 1) layer.in.go_backwards = back;
      layer.initial = {h[i]};
      if (lstm) layer.initial.push_back(c[i]);
      results = AddLayer(made_, layer, AddLoopBody(made_, layer));
      final_h.push_back(results[2]);
      if (lstm) final_c.push_back(results[3]);
      outputs_.push_back(back ? Reversed(results[1]) : results[1]);
      if (part % directions_ == directions_ - 1 && parts_ > 1) layer.in.inputs = Joined();
    }
    SetStates(node_.results[1], final_h);
    if (lstm) SetStates(node_.results[2], final_c);
    if (parts_ > 1) made_.SetResult(node_.results[0], layer.in.inputs);
    else if (time_major_) SetSequence(made_, node_.results[0], layer, results);
    else made_.SetResult(node_.results[0], results[1]);
    return made_.Take();
  }

 private:
  Status Check() {
    const size_t count = node_.name == "CudnnRNNV3" ? 5 : 4;
    if (node_.operands.size() != count || node_.results.size() < 3)
      return Invalid("it has another number of operands");
    const std::string mode = node_.attrs.str("rnn_mode", "lstm");
    const std::string direction = node_.attrs.str("direction", "unidirectional");
    mode_ = std::ranges::find(kModes, mode, &Mode::name);
    if (mode_ == std::end(kModes)) return Unsupported("rnn_mode " + mode);
    if (direction != "unidirectional" && direction != "bidirectional")
      return Unsupported("direction " + direction);
    directions_ = direction == "bidirectional" ? 2 : 1;
    if (node_.attrs.str("input_mode", "linear_input") == "skip_input")
      return Unsupported("input_mode skip_input");
    if (node_.attrs.i64("num_proj", 0)) return Unsupported("a projection");
    time_major_ = node_.name != "CudnnRNNV3" || node_.attrs.b("time_major", true);
    const Shape& x = in_.shape(node_.operands[0]);
    const Shape& h = in_.shape(node_.operands[1]);
    if (x.rank() != 3 || x[2] < 1 || h.rank() != 3 || h[2] < 1) return Unsupported("its sizes are not known");
    parts_ = h[LayerAxis()];
    if (parts_ < 0) return Unsupported("how many layers it has is not known");
    if (parts_ == 0 || parts_ % directions_ != 0)
      return Invalid("it has " + std::to_string(parts_) + " states for " + std::to_string(directions_) +
                     " directions");
    for (size_t i = 3; i < node_.results.size(); ++i)
      if (!in_.readers(node_.results[i]).empty()) return Unsupported("what it keeps for training is read");
    inputs_ = x[2];
    units_ = h[2];
    return {};
  }

  // Every sequence has as many steps as the tensor.
  Status CheckLengths() const {
    if (node_.operands.size() < 5) return {};
    const ValueId lengths = node_.operands[4];
    const Extent steps = ExtentOf(in_, node_.operands[0], time_major_ ? 0 : 1);
    const Node* fill = in_.Producer(lengths);
    if (fill && fill->is(Op::kFill) && ExtentOf(in_, fill->operands[1]) == steps) return {};
    if (const auto all = in_.Ints(lengths); all && steps.size >= 0)
      if (std::ranges::all_of(*all, [&](int64_t n) { return n == steps.size; })) return {};
    return Unsupported("its sequences may differ in their lengths");
  }

  int64_t LayerAxis() const { return time_major_ ? 0 : 1; }
  // Returns the size of a layer's input; deeper layers read the outputs of all directions.
  int64_t Inputs(int64_t part) const { return part < directions_ ? inputs_ : directions_ * units_; }
  int64_t WeightsOf(int64_t part) const { return mode_->gates * units_ * (Inputs(part) + units_); }

  // All matrices, layer by layer, forward before backward, and then all biases in that order.
  Status CheckParameters() const {
    const Value& params = in_.function().value(node_.operands[3]);
    if (!params.is_const() || params.type.dtype != DType::kF32)
      return Unsupported("its parameters are no constant of f32");
    const auto given = static_cast<int64_t>(params.data.size() / sizeof(float));
    constexpr int64_t kMost = int64_t{1} << 24;
    constexpr int64_t kMostParts = 256;
    if (parts_ > kMostParts) return Unsupported(std::to_string(parts_) + " layers");
    int64_t expected = units_ > kMost || inputs_ > kMost ? -1 : 0;
    for (int64_t part = 0; expected >= 0 && part < parts_; ++part)
      expected += WeightsOf(part) + 2 * mode_->gates * units_;
    if (given == expected) return {};
    return Invalid("it has " + std::to_string(given) + " parameters for " + std::to_string(inputs_) +
                   " inputs, " + std::to_string(units_) + " units and " + std::to_string(parts_) + " layers");
  }

  Cell CellOf(int64_t number) {
    const Buffer data = in_.function().value(node_.operands[3]).data;
    const int64_t gates = mode_->gates;
    const int64_t u = units_;
    const int64_t n = Inputs(number);
    int64_t weights = 0;
    int64_t biases = 0;
    for (int64_t part = 0; part < parts_; ++part) biases += WeightsOf(part);
    for (int64_t part = 0; part < number; ++part) weights += WeightsOf(part);
    biases += number * 2 * gates * u;
    const auto part = [&](int64_t from, int64_t rows) {
      const Buffer slice = data.Slice(static_cast<size_t>(weights + from) * sizeof(float),
                                      static_cast<size_t>(u * rows) * sizeof(float));
      const ValueId matrix = made_.f().AddConst({DType::kF32, Shape{u, rows}}, slice, node_.location.name);
      return Block{matrix, true, 0, rows, 0, u};
    };
    const std::span<const float> values = data.As<float>();
    Cell cell = {mode_->kind, kNoValue, u, mode_->kind == Cell::Kind::kGru, mode_->activation, "sigmoid", {}};
    for (int64_t k = 0; k < gates; ++k) {
      const int64_t g = mode_->order[static_cast<size_t>(k)];
      GateWeights gate;
      gate.input = part(g * u * n, n);
      gate.recurrent = part(gates * u * n + g * u * u, u);
      const auto bias = [&](int64_t at) {
        const auto of = values.subspan(static_cast<size_t>(biases + at * u), static_cast<size_t>(u));
        return std::vector<float>(of.begin(), of.end());
      };
      gate.bias = bias(g);
      gate.recurrent_bias = bias(gates + g);
      if (!cell.reset_after) {
        for (size_t i = 0; i < gate.bias.size(); ++i) gate.bias[i] += gate.recurrent_bias[i];
        gate.recurrent_bias.clear();
      }
      cell.gates.push_back(std::move(gate));
    }
    return cell;
  }

  // [batch, units] for each layer, of an operand that has a dimension for them.
  std::vector<ValueId> States(size_t operand) {
    const ValueId v = node_.operands[operand];
    const Type type{DType::kF32, Shape{in_.shape(v)[time_major_ ? 1 : 0], units_}};
    if (parts_ == 1) {
      const Node* expand = in_.Producer(v);
      if (expand && expand->is(Op::kExpandDims)) return {made_.Input(expand->operands[0])};
      return {write_.Typed(Op::kReshape, {made_.Input(v), write_.I32({-1, units_})}, type)};
    }
    return write_
        .EmitTyped(Op::kUnpack, {made_.Input(v)}, std::vector<Type>(static_cast<size_t>(parts_), type),
                   MakeAttrs("num", parts_, "axis", LayerAxis()))
        .results;
  }

  void SetStates(ValueId old, const std::vector<ValueId>& states) {
    made_.SetResult(old, write_.Typed(Op::kPack, states, in_.type(old),
                                      MakeAttrs("values_count", parts_, "axis", LayerAxis())));
  }

  // Backward layers return their steps in the order of processing.
  ValueId Reversed(ValueId sequence) {
    return write_.Typed(Op::kReverseV2, {sequence, write_.I32({time_major_ ? 0 : 1})}, write_.type(sequence));
  }

  // The directions of a layer, side by side.
  ValueId Joined() {
    const std::vector<ValueId> outputs = std::exchange(outputs_, {});
    if (outputs.size() == 1) return outputs[0];
    Type type = write_.type(outputs[0]);
    if (type.shape.rank() == 3) type.shape.dims()[2] = directions_ * units_;
    return write_.Typed(Op::kConcatenation, outputs, type, MakeAttrs("axis", 2));
  }

  const View& in_;
  const Node& node_;
  Replacement made_;
  Rewriter write_;
  const Mode* mode_ = nullptr;
  bool time_major_ = true;
  int64_t inputs_ = 0;
  int64_t units_ = 0;
  int64_t directions_ = 1;
  int64_t parts_ = 1;             // layers times directions
  std::vector<ValueId> outputs_;  // of the layer at hand, by direction
};

}  // namespace

Result<std::optional<Region>> FindCudnnRnn(const View& view, const Node& node) {
  if (node.name != "CudnnRNN" && node.name != "CudnnRNNV2" && node.name != "CudnnRNNV3") return std::nullopt;
  auto region = Unpacker(view, node).Replace();
  if (!region) return Unsupported("its layers are not unpacked: " + region.error().message);
  return std::optional(*std::move(region));
}

}  // namespace fusebox::converter::recognize
