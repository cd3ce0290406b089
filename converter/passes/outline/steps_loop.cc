// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/outline/steps_loop.h"

namespace fusebox::converter::outline {
namespace {

const Type kList{DType::kVariant, Shape::Scalar()};
const Type kNumber{DType::kI32, Shape::Scalar()};

// Nodes at the end of a function.
struct Writer {
  Function& f;

  ValueId Add(Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {}) const {
    return f.AddNode(op, std::move(operands), {std::move(type)}, std::move(attrs)).results[0];
  }
  ValueId Ints(std::vector<int32_t> values) const {
    const auto n = static_cast<int64_t>(values.size());
    return f.AddConst(DType::kI32, Shape{n}, std::move(values));
  }
  ValueId Number(int32_t value) const {
    return f.AddConst(DType::kI32, Shape::Scalar(), std::vector<int32_t>{value});
  }
  ValueId List(Op op, std::vector<ValueId> operands, Type type) const {
    Attrs attrs;
    attrs.Set("element_dtype", DType::kF32);
    return Add(op, std::move(operands), std::move(type), std::move(attrs));
  }
};

class StepsLoop {
 public:
  StepsLoop(Module& module, const Function& caller, const Layer& layer)
      : module_(module), caller_(caller), layer_(layer) {
    const Shape& x = caller.value(layer.in.inputs).type.shape;
    batch_ = x[static_cast<size_t>(1 - layer.in.time_axis())];
    steps_ = x[static_cast<size_t>(layer.in.time_axis())];
    state_ = {DType::kF32, Shape{batch_, layer.cell.units}};
    element_ = {DType::kF32, Shape{batch_, x[2]}};
  }

  const Function& Add() {
    types_ = {kNumber, kNumber, kList, kList};  // the step, how many, what is read, what is written
    types_.insert(types_.end(), layer_.initial.size(), state_);
    const std::string cond = Condition(), step = Step();
    Function& body = module_.Add(layer_.location.name + "/layer");
    const Writer w{body};
    std::vector<ValueId> states;
    ValueId x = Input(body, layer_.in.inputs, "inputs");
    for (size_t i = 0; i < layer_.initial.size(); ++i)
      states.push_back(Input(body, layer_.initial[i], i ? "init_c" : "init_h"));
    const Type sequence{DType::kF32, Shape{steps_, batch_, element_.shape[1]}};
    if (!layer_.in.time_major) x = w.Add(Op::kTranspose, {x, w.Ints({1, 0, 2})}, sequence);
    if (layer_.in.go_backwards) x = w.Add(Op::kReverseV2, {x, w.Ints({0})}, sequence);
    const ValueId shape = w.Add(Op::kShape, {x}, {DType::kI32, Shape{3}});
    Attrs first;
    first.Set("shrink_axis_mask", 1);
    const ValueId count =
        w.Add(Op::kStridedSlice, {shape, w.Ints({0}), w.Ints({1}), w.Ints({1})}, kNumber, std::move(first));
    const ValueId like = w.Ints({-1, static_cast<int32_t>(layer_.cell.units)});
    std::vector<ValueId> variables = {w.Number(0), count,
                                      w.List(Op::kTensorListFromTensor, {x, ElementShape(w)}, kList),
                                      w.List(Op::kTensorListReserve, {like, count}, kList)};
    variables.insert(variables.end(), states.begin(), states.end());
    Attrs refs;
    refs.Set("cond_subgraph_index", FunctionRef{cond});
    refs.Set("body_subgraph_index", FunctionRef{step});
    const std::vector<ValueId> loop = body.AddNode(Op::kWhile, variables, types_, std::move(refs)).results;
    const Type stacked{DType::kF32, Shape{steps_, batch_, layer_.cell.units}};
    ValueId all = w.List(Op::kTensorListStack, {loop[3], like}, stacked);
    if (!layer_.in.time_major)
      all = w.Add(Op::kTranspose, {all, w.Ints({1, 0, 2})},
                  {DType::kF32, Shape{batch_, steps_, layer_.cell.units}});
    FinishBody(body, layer_, loop[4], all, loop.size() > 5 ? loop[5] : kNoValue);
    return body;
  }

 private:
  ValueId Input(Function& f, ValueId like, const char* name) const {
    f.input_names.emplace_back(name);
    return f.AddInput(caller_.value(like).type, name);
  }
  ValueId ElementShape(const Writer& w) const {
    return w.Ints({-1, static_cast<int32_t>(element_.shape[1])});
  }

  std::string Condition() {
    Function& f = module_.Add(layer_.location.name + "/more");
    for (const Type& type : types_) f.AddInput(type);
    f.outputs = {Writer{f}.Add(Op::kLess, {f.inputs[0], f.inputs[1]}, {DType::kBool, Shape::Scalar()})};
    return f.name;
  }

  std::string Step() {
    Function& f = module_.Add(layer_.location.name + "/step");
    const Writer w{f};
    for (const Type& type : types_) f.AddInput(type);
    const std::vector<ValueId> in = f.inputs;
    const ValueId x = w.List(Op::kTensorListGetItem, {in[2], in[0], ElementShape(w)}, element_);
    const std::vector<ValueId> next = Next(w, x, in[4], in.size() > 5 ? in[5] : kNoValue);
    f.outputs = {w.Add(Op::kAdd, {in[0], w.Number(1)}, kNumber), in[1], in[2],
                 w.Add(Op::kTensorListSetItem, {in[3], in[0], next[0]}, kList)};
    f.outputs.insert(f.outputs.end(), next.begin(), next.end());
    return f.name;
  }

  ValueId Times(const Writer& w, ValueId v, const Block& block, const std::vector<float>& bias) const {
    const Value& matrix = caller_.value(block.matrix);
    const ValueId weights = w.f.AddConst(matrix.type, matrix.data, matrix.name);
    const ValueId added = bias.empty() ? kNoValue : w.f.AddConst(DType::kF32, Shape{layer_.cell.units}, bias);
    return w.Add(Op::kFullyConnected, {v, weights, added}, state_);
  }
  ValueId Sum(const Writer& w, ValueId x, ValueId h, const GateWeights& gate) const {
    return w.Add(Op::kAdd,
                 {Times(w, x, gate.input, gate.bias), Times(w, h, gate.recurrent, gate.recurrent_bias)},
                 state_);
  }

  std::vector<ValueId> Next(const Writer& w, ValueId x, ValueId h, ValueId c) const {
    const auto& gates = layer_.cell.gates;
    const auto mul = [&](ValueId a, ValueId b) { return w.Add(Op::kMul, {a, b}, state_); };
    const auto add = [&](ValueId a, ValueId b) { return w.Add(Op::kAdd, {a, b}, state_); };
    const auto gate = [&](size_t k) { return w.Add(Op::kLogistic, {Sum(w, x, h, gates[k])}, state_); };
    const auto act = [&](ValueId v) {
      return w.Add(layer_.cell.activation == "relu" ? Op::kRelu : Op::kTanh, {v}, state_);
    };
    if (layer_.cell.kind == Cell::Kind::kSimpleRnn) return {act(Sum(w, x, h, gates[0]))};
    if (layer_.cell.kind == Cell::Kind::kLstm) {
      const ValueId next_c = add(mul(gate(1), c), mul(gate(0), act(Sum(w, x, h, gates[2]))));
      return {mul(gate(3), act(next_c)), next_c};
    }
    const ValueId z = gate(0);
    const ValueId reset = mul(gate(1), Times(w, h, gates[2].recurrent, gates[2].recurrent_bias));
    const ValueId fresh = act(add(Times(w, x, gates[2].input, gates[2].bias), reset));
    const ValueId one = w.f.AddConst(DType::kF32, Shape::Scalar(), std::vector<float>{1.0f});
    return {add(mul(z, h), mul(w.Add(Op::kSub, {one, z}, state_), fresh))};
  }

  Module& module_;
  const Function& caller_;
  const Layer& layer_;
  int64_t batch_ = -1, steps_ = -1;
  Type state_, element_;
  std::vector<Type> types_;
};

}  // namespace

const Function& AddStepsLoop(Module& module, const Function& caller, const Layer& layer) {
  return StepsLoop(module, caller, layer).Add();
}

}  // namespace fusebox::converter::outline
