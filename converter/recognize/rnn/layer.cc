// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/layer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "converter/recognize/rnn/scan.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

bool IsExchange(const View& in, const Node* node) {
  if (!node || !node->is(Op::kTranspose)) return false;
  const auto order = in.Ints(node->operands[1]);
  return order && order->size() >= 3 && *order == ExchangeOf(static_cast<int>(order->size()));
}

Type Floats(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

Type MaskType(const Function& f, const Layer& layer) {
  const Shape& shape = f.value(layer.mask).type.shape;
  return {DType::kBool, Shape{shape[0], shape[1]}};
}

std::vector<int64_t> KernelDims(const Block& block, int64_t columns) {
  std::vector<int64_t> dims = block.window.kernel;
  int64_t taps = 1;
  for (const int64_t size : dims) taps *= size;
  dims.insert(dims.end(), {block.rows / taps, columns});
  if (block.window.kernel.empty()) dims = {block.rows, columns};
  return dims;
}

// Kernel, recurrent kernel and bias of a composite.
class Weights {
 public:
  Weights(Rewriter& write, const Layer& layer) : write_(write), layer_(layer) {}

  // The gates' blocks side by side, as [rows, gates * units].
  ValueId Matrix(Block GateWeights::* member) {
    std::vector<Block> parts;
    for (const GateWeights& gate : layer_.cell.gates) Append(parts, gate.*member);
    std::vector<ValueId> values;
    int64_t columns = 0;
    for (const Block& part : parts) {
      values.push_back(Part(part));
      columns += part.columns;
    }
    ValueId matrix = values[0];
    if (values.size() > 1)
      matrix = Move(Op::kConcatenation, values, {parts[0].rows, columns}, MakeAttrs("axis", 1));
    return AsKernel(matrix, parts[0], columns);
  }

  ValueId Bias() {
    std::vector<float> all;
    std::vector<float> recurrent;
    for (const GateWeights& gate : layer_.cell.gates) {
      all.insert(all.end(), gate.bias.begin(), gate.bias.end());
      recurrent.insert(recurrent.end(), gate.recurrent_bias.begin(), gate.recurrent_bias.end());
    }
    const auto columns = static_cast<int64_t>(all.size());
    all.insert(all.end(), recurrent.begin(), recurrent.end());
    const Shape shape = layer_.cell.reset_after ? Shape{2, columns} : Shape{columns};
    return write_.f().AddConst(DType::kF32, shape, std::move(all), layer_.location.name + "/bias");
  }

 private:
  // Neighboring columns of one matrix stay together.
  static void Append(std::vector<Block>& parts, const Block& next) {
    if (!parts.empty()) {
      Block& last = parts.back();
      const bool same =
          last.matrix == next.matrix && last.transposed == next.transposed && last.row == next.row;
      if (same && last.column + last.columns == next.column) {
        last.columns += next.columns;
        return;
      }
    }
    parts.push_back(next);
  }

  // [kernel.., in, columns].
  ValueId AsKernel(ValueId matrix, const Block& block, int64_t columns) {
    if (block.window.kernel.empty()) return matrix;
    const std::vector<int64_t> dims = KernelDims(block, columns);
    return write_.Typed(Op::kReshape, {matrix, write_.I32(dims)}, Floats(dims));
  }

  // The result has the type and scale of the first operand.
  ValueId Move(Op op, ValueIds operands, std::vector<int64_t> dims, Attrs attrs = {}) {
    const Value from = write_.f().value(operands[0]);  // a copy: values move
    const ValueId moved =
        write_.Typed(op, std::move(operands), {from.type.dtype, Shape(std::move(dims))}, std::move(attrs));
    write_.f().value(moved).quant = from.quant;
    return moved;
  }

  ValueId Part(const Block& part) {
    Value matrix = layer_.weights->value(part.matrix);  // a copy: values move
    if (!part.window.kernel.empty()) {
      const int64_t outputs = *matrix.type.shape.element_count() / part.rows;
      matrix.type =
          Floats(part.transposed ? std::vector{outputs, part.rows} : std::vector{part.rows, outputs});
    }
    std::vector<int64_t> dims = matrix.type.shape.dims();
    if (part.transposed) std::swap(dims[0], dims[1]);
    const auto [at, fresh] = matrices_.try_emplace({part.matrix, part.transposed}, kNoValue);
    if (fresh) {
      at->second = write_.f().AddConst(matrix.type, matrix.data, matrix.name);
      write_.f().value(at->second).quant = matrix.quant;
      if (matrix.type.dtype != DType::kF32 && !layer_.hybrid)
        at->second = write_.Typed(Op::kDequantize, {at->second}, Floats(matrix.type.shape.dims()));
      if (part.transposed) at->second = Move(Op::kTranspose, {at->second, write_.I32({1, 0})}, dims);
    }
    if (dims == std::vector<int64_t>{part.rows, part.columns}) return at->second;
    return Move(Op::kSlice,
                {at->second, write_.I32({part.row, part.column}), write_.I32({part.rows, part.columns})},
                {part.rows, part.columns});
  }

  Rewriter& write_;
  const Layer& layer_;
  std::map<std::pair<ValueId, bool>, ValueId> matrices_;
};

int64_t Known(int64_t a, int64_t b) { return a >= 0 ? a : b; }

std::vector<Type> ResultTypes(const Function& f, const Layer& layer) {
  const Shape& in = f.value(layer.in.inputs).type.shape;
  const Shape& state = f.value(layer.initial[0]).type.shape;
  const auto batch_axis = static_cast<size_t>(1 - layer.in.time_axis());
  std::vector<int64_t> dims = {Known(in[batch_axis], state.rank() > 0 ? state[0] : -1)};
  dims.insert(dims.end(), layer.space.begin(), layer.space.end());
  dims.push_back(layer.cell.units);
  const Type last = Floats(dims);
  dims.insert(dims.begin() + layer.in.time_axis(), layer.sequence ? in[1 - batch_axis] : 1);
  std::vector<Type> types = {last, Floats(dims)};
  types.insert(types.end(), layer.initial.size(), last);
  return types;
}

Attrs AttrsOf(const Layer& layer) {
  Attrs attrs;
  attrs.Set("time_major", layer.in.time_major);
  attrs.Set("go_backwards", layer.in.go_backwards);
  attrs.Set("activation", layer.cell.activation);
  if (layer.cell.kind != Cell::Kind::kSimpleRnn)
    attrs.Set("recurrent_activation", layer.cell.recurrent_activation);
  if (layer.cell.kind == Cell::Kind::kGru) attrs.Set("reset_after", layer.cell.reset_after);
  attrs.Set("sequence", layer.sequence);
  if (layer.hybrid && layer.cell.gates[0].input.asymmetric) attrs.Set("asymmetric_quantize_inputs", true);
  if (layer.cell.kind == Cell::Kind::kConvLstm) {
    const Window& window = layer.cell.gates[0].input.window;
    attrs.Set("strides", window.strides);
    attrs.Set("dilations", window.dilations);
    attrs.Set("padding", window.padding);
  }
  if (layer.mask != kNoValue) attrs.Set("zero_output_for_mask", layer.zero_output_for_mask);
  return attrs;
}

ValueId LastStep(Rewriter& write, const Layer& layer, ValueId sequence) {
  const int axis = layer.in.time_axis();
  std::vector<int64_t> begin(3, 0);
  begin[static_cast<size_t>(axis)] = -1;
  return write.Typed(Op::kStridedSlice,
                     {sequence, write.I32(begin), write.I32({0, 0, 0}), write.I32({1, 1, 1})},
                     {DType::kF32, Shape()},
                     MakeAttrs("begin_mask", 7 & ~(1 << axis), "end_mask", 7, "shrink_axis_mask", 1 << axis));
}

}  // namespace

std::vector<int64_t> ExchangeOf(int rank) {
  std::vector<int64_t> order = {1, 0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  return order;
}

SequenceLayout LayoutOf(const View& caller, ValueId sequence) {
  SequenceLayout out{sequence};
  for (;;) {
    const Node* node = caller.Producer(out.inputs);
    if (!node) return out;
    const bool reverses = node->is(Op::kReverseV2) && !out.go_backwards &&
                          caller.Ints(node->operands[1]) == std::vector<int64_t>{out.time_axis()};
    if (reverses) out.go_backwards = true;
    else if (out.time_major && IsExchange(caller, node)) out.time_major = false;
    else return out;
    out.inputs = node->operands[0];
  }
}

Layer Imported(Replacement& made, Layer layer) {
  layer.in.inputs = made.Input(layer.in.inputs);
  for (ValueId& state : layer.initial) state = made.Input(state);
  if (layer.mask != kNoValue) layer.mask = made.Input(layer.mask);
  return layer;
}

LayerBody AddLayerBody(Replacement& made, const Layer& layer) {
  const Function& outside = made.f();
  const Cell& cell = layer.cell;
  LayerBody body{made.AddFunction(layer.location.name + "/layer"), kNoValue, {}, kNoValue};
  const auto input = [&](Type type, const char* name) {
    body.f.input_names.emplace_back(name);
    return body.f.AddInput(std::move(type), name);
  };
  body.inputs = input(outside.value(layer.in.inputs).type, "inputs");
  for (const ValueId state : layer.initial)
    body.states.push_back(input(outside.value(state).type, body.states.empty() ? "init_h" : "init_c"));
  // The weights are constants of the region already; these operands are for rules.
  const int64_t columns = static_cast<int64_t>(cell.gates.size()) * cell.units;
  // A folded state has no separate block.
  const Block& recurrent = cell.gates[0].recurrent;
  const auto kernel = [&](const Block& block, std::vector<int64_t> dims, const char* name) {
    const bool bytes = layer.hybrid && block.matrix != kNoValue;
    const Value* const from = bytes ? &layer.weights->value(block.matrix) : nullptr;
    const ValueId v = input({from ? from->type.dtype : DType::kF32, Shape(std::move(dims))}, name);
    if (from) body.f.value(v).quant = from->quant;
  };
  kernel(cell.gates[0].input, KernelDims(cell.gates[0].input, columns), "kernel");
  kernel(recurrent,
         recurrent.window.kernel.empty() ? std::vector{cell.units, columns} : KernelDims(recurrent, columns),
         "recurrent_kernel");
  input(Floats(cell.reset_after ? std::vector<int64_t>{2, columns} : std::vector<int64_t>{columns}), "bias");
  if (layer.mask == kNoValue) return body;
  const ValueId mask = input(MaskType(outside, layer), "mask");
  Rewriter write(body.f);
  body.mask = write.Typed(Op::kExpandDims, {mask, write.I32Scalar(2)}, outside.value(layer.mask).type);
  return body;
}

void LayerBody::SetResults(const Layer& layer, ValueId sequence, const std::vector<ValueId>& final_states) {
  Rewriter write(f);
  const ValueId last = layer.mask == kNoValue ? final_states[0] : LastStep(write, layer, sequence);
  f.outputs = {last, sequence};
  f.outputs.insert(f.outputs.end(), final_states.begin(), final_states.end());
  f.output_names = {"last_output", "outputs", "h", "c"};
  f.output_names.resize(f.outputs.size());
}

std::vector<ValueId> AddLayer(Replacement& made, const Layer& layer, const Function& body) {
  Rewriter write(made.f());
  write.SetLocation(layer.location);
  Weights weights(write, layer);
  std::vector<ValueId> operands = {layer.in.inputs};
  operands.insert(operands.end(), layer.initial.begin(), layer.initial.end());
  operands.push_back(weights.Matrix(&GateWeights::input));
  operands.push_back(weights.Matrix(&GateWeights::recurrent));
  operands.push_back(weights.Bias());
  if (layer.mask != kNoValue)
    operands.push_back(write.Typed(Op::kSqueeze, {layer.mask}, MaskType(write.f(), layer),
                                   MakeAttrs("squeeze_dims", std::vector<int64_t>{2})));
  Node& node =
      write.EmitTyped(Op::kStablehloComposite, operands, ResultTypes(write.f(), layer), AttrsOf(layer));
  node.name = CompositeName(layer.cell.kind);
  node.version = 1;
  node.body = body.name;
  return node.results;
}

void SetSequence(Replacement& made, ValueId steps, const Layer& layer, const std::vector<ValueId>& results) {
  const ValueId last = results[0];
  const ValueId outputs = results[1];
  const View& in = made.view();
  const auto pick_last = [&](ValueId sequence, size_t axis) {
    for (const auto& reader : in.readers(sequence))
      if (reader.node && reader.index == 0 && MatchesLast(in, *reader.node, axis, !layer.sequence))
        made.SetResult(reader.node->results[0], last);
  };
  pick_last(steps, 0);
  for (const auto& reader : in.readers(steps)) {
    if (reader.index != 0 || !IsExchange(in, reader.node)) continue;
    pick_last(reader.node->results[0], 1);
    if (!layer.in.time_major) made.SetResult(reader.node->results[0], outputs);
  }
  if (layer.in.time_major) return made.SetResult(steps, outputs);
  Rewriter write(made.f());
  write.SetLocation(layer.location);
  made.SetResult(steps, write.Typed(Op::kTranspose, {outputs, write.I32(ExchangeOf(in.shape(steps).rank()))},
                                    in.type(steps)));
}

}  // namespace fusebox::converter::recognize
