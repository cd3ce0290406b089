// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/layer.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

const Type kList{DType::kVariant, Shape::Scalar()};
const Type kNumber{DType::kI32, Shape::Scalar()};

ValueId List(Rewriter& write, Op op, ValueIds operands, Type type) {
  return write.Typed(op, std::move(operands), std::move(type), MakeAttrs("element_dtype", DType::kF32));
}

class LoopBody {
 public:
  LoopBody(Replacement& made, const Layer& layer) : made_(made), layer_(layer) {
    const Shape& x = made.f().value(layer.in.inputs).type.shape;
    batch_ = x[static_cast<size_t>(1 - layer.in.time_axis())];
    steps_ = x[static_cast<size_t>(layer.in.time_axis())];
    state_ = {DType::kF32, Shape{batch_, layer.cell.units}};
    element_ = {DType::kF32, Shape{batch_, x[2]}};
  }

  const Function& Add() {
    types_ = {kNumber, kNumber, kList, kList};  // the step, how many, what is read, what is written
    types_.insert(types_.end(), layer_.initial.size(), state_);
    LayerBody body = AddLayerBody(made_, layer_);
    Rewriter w(body.f);
    const Type sequence{DType::kF32, Shape{steps_, batch_, element_.shape[1]}};
    ValueId x = body.inputs;
    if (!layer_.in.time_major) x = w.Typed(Op::kTranspose, {x, w.I32({1, 0, 2})}, sequence);
    if (layer_.in.go_backwards) x = w.Typed(Op::kReverseV2, {x, w.I32({0})}, sequence);
    const std::vector<ValueId> loop = Loop(w, x, body.states);
    ValueId all = List(w, Op::kTensorListStack, {loop[3], Like(w)},
                       {DType::kF32, Shape{steps_, batch_, layer_.cell.units}});
    if (!layer_.in.time_major)
      all = w.Typed(Op::kTranspose, {all, w.I32({1, 0, 2})},
                    {DType::kF32, Shape{batch_, steps_, layer_.cell.units}});
    body.SetResults(layer_, all, {loop.begin() + 4, loop.end()});
    return body.f;
  }

 private:
  // The variables after the last step.
  std::vector<ValueId> Loop(Rewriter& w, ValueId x, const std::vector<ValueId>& states) {
    const ValueId shape = w.Typed(Op::kShape, {x}, {DType::kI32, Shape{3}});
    const ValueId count = w.Typed(Op::kStridedSlice, {shape, w.I32({0}), w.I32({1}), w.I32({1})}, kNumber,
                                  MakeAttrs("shrink_axis_mask", 1));
    std::vector<ValueId> variables = {w.I32Scalar(0), count,
                                      List(w, Op::kTensorListFromTensor, {x, ElementShape(w)}, kList),
                                      List(w, Op::kTensorListReserve, {Like(w), count}, kList)};
    variables.insert(variables.end(), states.begin(), states.end());
    return w
        .EmitTyped(Op::kWhile, variables, types_,
                   MakeAttrs("cond_subgraph_index", FunctionRef{Condition()}, "body_subgraph_index",
                             FunctionRef{Step()}))
        .results;
  }

  ValueId Like(Rewriter& w) const { return w.I32({-1, layer_.cell.units}); }
  ValueId ElementShape(Rewriter& w) const { return w.I32({-1, element_.shape[1]}); }

  std::string Condition() {
    Function& f = made_.AddFunction(layer_.location.name + "/more");
    for (const Type& type : types_) f.AddInput(type);
    f.outputs = {Rewriter(f).Typed(Op::kLess, {f.inputs[0], f.inputs[1]}, {DType::kBool, Shape::Scalar()})};
    return f.name;
  }

  std::string Step() {
    Function& f = made_.AddFunction(layer_.location.name + "/step");
    for (const Type& type : types_) f.AddInput(type);
    Rewriter w(f);
    const std::vector<ValueId> in = f.inputs;
    const ValueId x = List(w, Op::kTensorListGetItem, {in[2], in[0], ElementShape(w)}, element_);
    const std::vector<ValueId> next = Next(w, x, in[4], in.size() > 5 ? in[5] : kNoValue);
    f.outputs = {w.Typed(Op::kAdd, {in[0], w.I32Scalar(1)}, kNumber), in[1], in[2],
                 List(w, Op::kTensorListSetItem, {in[3], in[0], next[0]}, kList)};
    f.outputs.insert(f.outputs.end(), next.begin(), next.end());
    return f.name;
  }

  ValueId Times(Rewriter& w, ValueId v, const Block& block, const std::vector<float>& bias) const {
    const Value& matrix = layer_.weights->value(block.matrix);
    const ValueId weights = w.f().AddConst(matrix.type, matrix.data, matrix.name);
    const ValueId added =
        bias.empty() ? kNoValue : w.f().AddConst(DType::kF32, Shape{layer_.cell.units}, bias);
    return w.Typed(Op::kFullyConnected, {v, weights, added}, state_);
  }
  ValueId Sum(Rewriter& w, ValueId x, ValueId h, const GateWeights& gate) const {
    return w.Typed(Op::kAdd,
                   {Times(w, x, gate.input, gate.bias), Times(w, h, gate.recurrent, gate.recurrent_bias)},
                   state_);
  }

  std::vector<ValueId> Next(Rewriter& w, ValueId x, ValueId h, ValueId c) const {
    const auto& gates = layer_.cell.gates;
    const auto mul = [&](ValueId a, ValueId b) { return w.Typed(Op::kMul, {a, b}, state_); };
    const auto add = [&](ValueId a, ValueId b) { return w.Typed(Op::kAdd, {a, b}, state_); };
    const auto gate = [&](size_t k) { return w.Typed(Op::kLogistic, {Sum(w, x, h, gates[k])}, state_); };
    const auto act = [&](ValueId v) {
      return w.Typed(layer_.cell.activation == "relu" ? Op::kRelu : Op::kTanh, {v}, state_);
    };
    if (layer_.cell.kind == Cell::Kind::kSimpleRnn) return {act(Sum(w, x, h, gates[0]))};
    if (layer_.cell.kind == Cell::Kind::kLstm) {
      const ValueId next_c = add(mul(gate(1), c), mul(gate(0), act(Sum(w, x, h, gates[2]))));
      return {mul(gate(3), act(next_c)), next_c};
    }
    const ValueId z = gate(0);
    const ValueId reset = mul(gate(1), Times(w, h, gates[2].recurrent, gates[2].recurrent_bias));
    const ValueId fresh = act(add(Times(w, x, gates[2].input, gates[2].bias), reset));
    const ValueId one = w.Scalar(DType::kF32, 1);
    return {add(mul(z, h), mul(w.Typed(Op::kSub, {one, z}, state_), fresh))};
  }

  Replacement& made_;
  const Layer& layer_;
  int64_t batch_ = -1;
  int64_t steps_ = -1;
  Type state_, element_;
  std::vector<Type> types_;
};

}  // namespace

const Function& AddLoopBody(Replacement& made, const Layer& layer) { return LoopBody(made, layer).Add(); }

}  // namespace fusebox::converter::recognize
