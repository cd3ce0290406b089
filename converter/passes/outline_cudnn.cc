// SPDX-License-Identifier: Apache-2.0
// CudnnRNN, V2 and V3 (models that were exported where a GPU was) become a recurrent layer's composite: their packed parameters are
// its weights. Its body is a loop over the steps, made here.
#include <algorithm>
#include <array>

#include "converter/passes/outline/composite.h"
#include "converter/passes/outline/loop.h"
#include "converter/passes/outline/steps_loop.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

using namespace outline;

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

bool IsCudnn(const Node& node) {
  return node.is(Op::kOpaque) &&
         (node.name == "CudnnRNN" || node.name == "CudnnRNNV2" || node.name == "CudnnRNNV3");
}

class Unpacker {
 public:
  Unpacker(Module& module, Function& f, size_t index)
      : module_(module), f_(f), in_(f), index_(index), node_(*f.nodes[index]) {}

  Status Replace() {
    FUSEBOX_TRY(Check());
    FUSEBOX_TRY(CheckLengths());
    FUSEBOX_TRY(SetWeights());
    layer_.in = time_major_ ? Orient(in_, node_.operands[0]) : Orientation{node_.operands[0], false, false};
    layer_.location = node_.location;
    layer_.weights = &f_;
    const std::vector<ValueId> old = node_.results;
    size_t at = index_;
    layer_.initial = {State(at, 1)};
    if (layer_.cell.kind == Cell::Kind::kLstm) layer_.initial.push_back(State(at, 2));
    const Function& body = AddStepsLoop(module_, f_, layer_);
    const Node composite = AddComposite(f_, at, layer_, body.name);  // a copy: nodes move
    f_.nodes.erase(f_.nodes.begin() + static_cast<std::ptrdiff_t>(at));
    for (size_t k = 0; k < layer_.initial.size(); ++k) {
      const ValueId axis =
          f_.AddConst(DType::kI32, Shape::Scalar(), std::vector<int32_t>{time_major_ ? 0 : 1});
      const Type type = f_.value(old[1 + k]).type;
      const ValueId state =
          f_.InsertNode(at++, Op::kExpandDims, {composite.results[2 + k], axis}, {type}).results[0];
      f_.ReplaceUses(old[1 + k], state);
    }
    if (time_major_) ReplaceSequence(f_, at, old[0], layer_, composite);
    else f_.ReplaceUses(old[0], composite.results[1]);
    return {};
  }

 private:
  Status Check() {
    const size_t count = node_.name == "CudnnRNNV3" ? 5 : 4;
    if (node_.operands.size() != count || node_.results.size() < 3)
      return Invalid("it has another number of operands");
    const std::string mode = node_.attrs.str("rnn_mode", "lstm"),
                      direction = node_.attrs.str("direction", "unidirectional");
    mode_ = std::ranges::find(kModes, mode, &Mode::name);
    if (mode_ == std::end(kModes)) return Unsupported("rnn_mode " + mode);
    if (direction != "unidirectional") return Unsupported("direction " + direction);
    if (node_.attrs.str("input_mode", "linear_input") == "skip_input")
      return Unsupported("input_mode skip_input");
    if (node_.attrs.i64("num_proj", 0)) return Unsupported("a projection");
    time_major_ = node_.name != "CudnnRNNV3" || node_.attrs.b("time_major", true);
    const Shape &x = f_.value(node_.operands[0]).type.shape, &h = f_.value(node_.operands[1]).type.shape;
    if (x.rank() != 3 || x[2] < 1 || h.rank() != 3 || h[2] < 1) return Unsupported("its sizes are not known");
    if (h[time_major_ ? 0 : 1] != 1) return Unsupported("more than one layer");
    for (size_t i = 3; i < node_.results.size(); ++i)
      if (!in_.uses().readers(node_.results[i]).empty())
        return Unsupported("what it keeps for training is read");
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

  Status SetWeights() {
    const Value& params = f_.value(node_.operands[3]);
    if (!params.is_const() || params.type.dtype != DType::kF32)
      return Unsupported("its parameters are no constant of f32");
    const int64_t gates = mode_->gates, u = units_, n = inputs_;
    const auto given = static_cast<int64_t>(params.data.size() / sizeof(float));
    constexpr int64_t kMost = int64_t{1} << 24;
    if (u > kMost || n > kMost || given != gates * (u * n + u * u + 2 * u))
      return Invalid("it has " + std::to_string(given) + " parameters for " + std::to_string(n) +
                     " inputs and " + std::to_string(u) + " units");
    const Buffer data = params.data;
    const auto part = [&](int64_t from, int64_t rows) {
      const Buffer slice = data.Slice(static_cast<size_t>(from) * sizeof(float),
                                      static_cast<size_t>(u * rows) * sizeof(float));
      const ValueId matrix = f_.AddConst({DType::kF32, Shape{u, rows}}, slice, node_.location.name);
      return Block{matrix, true, 0, rows, 0, u};
    };
    const std::span<const float> values = data.As<float>();
    const int64_t biases = gates * (u * n + u * u);
    Cell& cell = layer_.cell;
    cell = {mode_->kind, kNoValue, u, mode_->kind == Cell::Kind::kGru, mode_->activation, "sigmoid", {}};
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
    return {};
  }

  // [batch, units] of an operand that has a dimension for layers too.
  ValueId State(size_t& at, size_t operand) {
    const ValueId v = node_.operands[operand];
    if (const Node* expand = in_.Producer(v); expand && expand->is(Op::kExpandDims))
      return expand->operands[0];
    const Shape& shape = f_.value(v).type.shape;
    const Type type{DType::kF32, Shape{shape[time_major_ ? 1 : 0], units_}};
    const ValueId sizes =
        f_.AddConst(DType::kI32, Shape{2}, std::vector<int32_t>{-1, static_cast<int32_t>(units_)});
    return f_.InsertNode(at++, Op::kReshape, {v, sizes}, {type}).results[0];
  }

  Module& module_;
  Function& f_;
  const Expressions in_;
  size_t index_;
  const Node& node_;
  const Mode* mode_ = nullptr;
  bool time_major_ = true;
  int64_t inputs_ = 0, units_ = 0;
  Layer layer_;
};

}  // namespace

Status OutlineCudnn(Context& context) {
  for (const Signature& s : context.module.signatures) {
    Function& f = *context.module.Find(s.function);
    bool changed = false;
    for (size_t i = 0; i < f.nodes.size(); ++i) {
      if (!IsCudnn(*f.nodes[i])) continue;
      const std::string place = DescribeIn(f, *f.nodes[i], i);
      const Status replaced = Unpacker(context.module, f, i).Replace();
      if (!replaced) context.Note(place + " is not unpacked: " + replaced.error().message);
      changed |= bool(replaced);
    }
    if (!changed) continue;
    FUSEBOX_TRY(Fold(context.registry, context.module, f));
    RemoveDead(f);
  }
  return {};
}

}  // namespace fusebox::converter
