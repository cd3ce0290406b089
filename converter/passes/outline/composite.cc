// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/outline/composite.h"

#include <algorithm>
#include <set>

#include "host/base/status.h"

namespace fusebox::converter::outline {
namespace {

const std::vector<int64_t> kExchange = {1, 0, 2};

bool IsExchange(const Expressions& in, const Node* node) {
  return node && node->is(Op::kTranspose) && in.Ints(node->operands[1]) == kExchange;
}

ValueId I32(Function& f, const std::vector<int64_t>& values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return f.AddConst(DType::kI32, Shape{static_cast<int64_t>(values.size())}, narrow);
}

// Inserts nodes one after another.
class Inserter {
 public:
  Inserter(Function& f, size_t& at, const Layer& layer) : f_(f), at_(at), layer_(layer) {}

  ValueId Add(Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {}) {
    return AddNode(op, std::move(operands), {std::move(type)}, std::move(attrs)).results[0];
  }
  Node& AddNode(Op op, std::vector<ValueId> operands, std::vector<Type> types, Attrs attrs) {
    Node& made = f_.InsertNode(at_++, op, std::move(operands), std::move(types), std::move(attrs));
    made.location = layer_.location;
    for (const ValueId v : made.results) f_.value(v).name = layer_.location.name;
    return made;
  }

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
    if (values.size() == 1) return values[0];
    Attrs attrs;
    attrs.Set("axis", 1);
    return Add(Op::kConcatenation, values, F32({parts[0].rows, columns}), std::move(attrs));
  }

  ValueId Bias() {
    std::vector<float> all, recurrent;
    for (const GateWeights& gate : layer_.cell.gates) {
      all.insert(all.end(), gate.bias.begin(), gate.bias.end());
      recurrent.insert(recurrent.end(), gate.recurrent_bias.begin(), gate.recurrent_bias.end());
    }
    const auto columns = static_cast<int64_t>(all.size());
    all.insert(all.end(), recurrent.begin(), recurrent.end());
    const Shape shape = layer_.cell.reset_after ? Shape{2, columns} : Shape{columns};
    return f_.AddConst(DType::kF32, shape, std::move(all), layer_.location.name + "/bias");
  }

  // bool [batch, steps]
  ValueId Mask() {
    Attrs attrs;
    attrs.Set("squeeze_dims", std::vector<int64_t>{2});
    return Add(Op::kSqueeze, {layer_.mask}, MaskType(f_, layer_), std::move(attrs));
  }

  static Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }
  static Type MaskType(const Function& f, const Layer& layer) {
    const Shape& shape = f.value(layer.mask).type.shape;
    return {DType::kBool, Shape{shape[0], shape[1]}};
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

  ValueId Part(const Block& part) {
    const Value& matrix = layer_.weights->value(part.matrix);
    std::vector<int64_t> dims = matrix.type.shape.dims();
    ValueId& whole = matrices_[{part.matrix, part.transposed}];
    if (part.transposed) std::swap(dims[0], dims[1]);
    if (whole == kNoValue) {
      whole = f_.AddConst(matrix.type, matrix.data, matrix.name);
      if (part.transposed) whole = Add(Op::kTranspose, {whole, I32(f_, {1, 0})}, F32(dims));
    }
    if (dims == std::vector<int64_t>{part.rows, part.columns}) return whole;
    return Add(Op::kSlice, {whole, I32(f_, {part.row, part.column}), I32(f_, {part.rows, part.columns})},
               F32({part.rows, part.columns}));
  }

  struct Empty {
    ValueId value = kNoValue;
    operator ValueId&() { return value; }  // NOLINT(google-explicit-constructor)
  };

  Function& f_;
  size_t& at_;
  const Layer& layer_;
  std::map<std::pair<ValueId, bool>, Empty> matrices_;
};

int64_t Known(int64_t a, int64_t b) { return a >= 0 ? a : b; }

std::vector<Type> ResultTypes(const Function& f, const Layer& layer) {
  const Shape& in = f.value(layer.in.inputs).type.shape;
  const Shape& state = f.value(layer.initial[0]).type.shape;
  const auto batch_axis = static_cast<size_t>(1 - layer.in.time_axis());
  const int64_t batch = Known(in[batch_axis], state.rank() == 2 ? state[0] : -1), units = layer.cell.units;
  const int64_t steps = layer.sequence ? in[1 - batch_axis] : 1;
  const Type last = Inserter::F32({batch, units});
  const Type outputs = Inserter::F32(layer.in.time_major ? std::vector{steps, batch, units}
                                                         : std::vector{batch, steps, units});
  std::vector<Type> types = {last, outputs};
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
  if (layer.mask != kNoValue) attrs.Set("zero_output_for_mask", layer.zero_output_for_mask);
  return attrs;
}

}  // namespace

Orientation Orient(const Expressions& caller, ValueId sequence) {
  Orientation out{sequence};
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

Node& AddComposite(Function& caller, size_t& at, const Layer& layer, std::string body) {
  Inserter insert(caller, at, layer);
  std::vector<ValueId> operands = {layer.in.inputs};
  operands.insert(operands.end(), layer.initial.begin(), layer.initial.end());
  operands.push_back(insert.Matrix(&GateWeights::input));
  operands.push_back(insert.Matrix(&GateWeights::recurrent));
  operands.push_back(insert.Bias());
  if (layer.mask != kNoValue) operands.push_back(insert.Mask());
  Node& made = insert.AddNode(Op::kStablehloComposite, std::move(operands), ResultTypes(caller, layer),
                              AttrsOf(layer));
  made.name = CompositeName(layer.cell.kind);
  made.version = 1;
  made.body = std::move(body);
  return made;
}

Result<std::vector<ValueId>> CopyRegion(const Function& caller, const Region& region, const Layer& layer,
                                        Function& body) {
  const Uses uses(caller);
  std::map<ValueId, ValueId> copies;
  const auto input = [&](ValueId like, const char* name) {
    body.input_names.emplace_back(name);
    return body.AddInput(caller.value(like).type, name);
  };
  std::vector<ValueId> inputs = {input(layer.in.inputs, "inputs")};
  for (size_t i = 0; i < layer.initial.size(); ++i)
    inputs.push_back(input(layer.initial[i], i ? "init_c" : "init_h"));
  for (const auto& [value, operand] : region.bound) copies[value] = inputs[operand];
  if (layer.mask != kNoValue) {
    body.input_names.emplace_back("mask");
    const ValueId mask = body.AddInput(Inserter::MaskType(caller, layer), "mask");
    const ValueId axis = body.AddConst(DType::kI32, Shape::Scalar(), std::vector<int32_t>{2});
    copies[layer.mask] =
        body.AddNode(Op::kExpandDims, {mask, axis}, {caller.value(layer.mask).type}).results[0];
  }

  std::vector<ValueId> open = region.wanted;
  std::set<const Node*> needed;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (v == kNoValue || copies.contains(v)) continue;
    const Value& value = caller.value(v);
    const Node* node = uses.producer(v);
    if (value.is_const()) {
      copies[v] = body.AddConst(value.type, value.data, value.name);
    } else if (!node) {
      return Unsupported("it hangs on " + (value.name.empty() ? "another input" : value.name) +
                         " besides its own input and states");
    } else if (needed.insert(node).second) {
      if (Info(node->op).effects != Effects::kPure && !node->is(Op::kWhile))
        return Unsupported("it hangs on " + Describe(caller, *node));
      for (size_t i = 0; i < node->operands.size(); ++i)
        if (!region.bound_operands.contains({node, i})) open.push_back(node->operands[i]);
    }
  }
  for (const auto& node : caller.nodes) {
    if (!needed.contains(node.get())) continue;
    auto copy = std::make_unique<Node>(*node);
    for (size_t i = 0; i < copy->operands.size(); ++i) {
      const auto bound = region.bound_operands.find({node.get(), i});
      if (bound != region.bound_operands.end()) copy->operands[i] = inputs[bound->second];
      else if (copy->operands[i] != kNoValue) copy->operands[i] = copies.at(copy->operands[i]);
    }
    for (ValueId& v : copy->results) {
      const Value& value = caller.value(v);
      copies[v] = body.AddValue(value.type, value.name);
      v = copies[v];
    }
    body.nodes.push_back(std::move(copy));
  }
  std::vector<ValueId> out;
  for (const ValueId v : region.wanted) out.push_back(copies.at(v));
  return out;
}

namespace {

ValueId LastStep(Function& body, const Layer& layer, ValueId sequence) {
  const int axis = layer.in.time_axis();
  std::vector<int64_t> begin(3, 0), end(3, 0);
  begin[static_cast<size_t>(axis)] = -1;
  Attrs attrs;
  attrs.Set("begin_mask", 7 & ~(1 << axis));
  attrs.Set("end_mask", 7);
  attrs.Set("shrink_axis_mask", 1 << axis);
  return body
      .AddNode(Op::kStridedSlice, {sequence, I32(body, begin), I32(body, end), I32(body, {1, 1, 1})},
               {{DType::kF32, Shape()}}, std::move(attrs))
      .results[0];
}

}  // namespace

void FinishBody(Function& body, const Layer& layer, ValueId h, ValueId sequence, ValueId c) {
  const Cell& cell = layer.cell;
  const int64_t columns = static_cast<int64_t>(cell.gates.size()) * cell.units;
  const auto add = [&](std::vector<int64_t> dims, const char* name) {
    body.AddInput(Inserter::F32(std::move(dims)), name);
    body.input_names.emplace_back(name);
  };
  add({cell.gates[0].input.rows, columns}, "kernel");
  add({cell.units, columns}, "recurrent_kernel");
  add(cell.reset_after ? std::vector<int64_t>{2, columns} : std::vector<int64_t>{columns}, "bias");
  ValueId last = h;
  if (layer.mask != kNoValue) {
    const auto mask_at = static_cast<std::ptrdiff_t>(layer.initial.size() + 1);
    std::rotate(body.inputs.begin() + mask_at, body.inputs.begin() + mask_at + 1, body.inputs.end());
    std::rotate(body.input_names.begin() + mask_at, body.input_names.begin() + mask_at + 1,
                body.input_names.end());
    last = LastStep(body, layer, sequence);
  }
  body.outputs = {last, sequence, h};
  body.output_names = {"last_output", "outputs", "h"};
  if (c == kNoValue) return;
  body.outputs.push_back(c);
  body.output_names.emplace_back("c");
}

namespace {

// sequence[..., last, ...] along the axis, which goes.
bool TakesLast(const Expressions& in, const Node& node, size_t axis, bool one_step) {
  if (!node.is(Op::kStridedSlice) || node.attrs.i64("shrink_axis_mask", 0) != int64_t{1} << axis ||
      node.attrs.i64("new_axis_mask", 0) || node.attrs.i64("ellipsis_mask", 0))
    return false;
  const auto begin = in.Ints(node.operands[1]), step = in.Ints(node.operands[3]);
  if (!begin || !step || begin->size() <= axis || step->size() != begin->size()) return false;
  const Shape& shape = in.function().value(node.operands[0]).type.shape;
  const int64_t steps = shape.rank() == 3 ? shape[axis] : -1, at = (*begin)[axis];
  if (node.attrs.i64("begin_mask", 0) >> axis & 1) return false;
  if (at != -1 && !(at == 0 && one_step) && !(steps > 0 && at == steps - 1)) return false;
  for (size_t d = 0; d < begin->size(); ++d) {
    const int64_t bit = int64_t{1} << d;
    const bool whole =
        node.attrs.i64("begin_mask", 0) & bit && node.attrs.i64("end_mask", 0) & bit && (*step)[d] == 1;
    if (d != axis && !whole) return false;
  }
  return true;
}

}  // namespace

void ReplaceSequence(Function& caller, size_t after, ValueId steps, const Layer& layer,
                     const Node& composite) {
  const ValueId last = composite.results[0], outputs = composite.results[1];
  const Expressions in(caller);
  std::vector<std::pair<ValueId, ValueId>> same;
  const auto pick_last = [&](ValueId sequence, size_t axis) {
    for (const auto& reader : in.uses().readers(sequence))
      if (reader.node && reader.index == 0 && TakesLast(in, *reader.node, axis, !layer.sequence))
        same.emplace_back(reader.node->results[0], last);
  };
  pick_last(steps, 0);
  for (const auto& reader : in.uses().readers(steps)) {
    if (reader.index != 0 || !IsExchange(in, reader.node)) continue;
    pick_last(reader.node->results[0], 1);
    if (!layer.in.time_major) same.emplace_back(reader.node->results[0], outputs);
  }
  for (const auto& [from, to] : same) caller.ReplaceUses(from, to);
  if (layer.in.time_major) {
    caller.ReplaceUses(steps, outputs);
    return;
  }
  Inserter insert(caller, after, layer);
  const ValueId exchanged =
      insert.Add(Op::kTranspose, {outputs, I32(caller, kExchange)}, caller.value(steps).type);
  caller.ReplaceUses(steps, exchanged);
}

}  // namespace fusebox::converter::outline
