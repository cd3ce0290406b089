// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

struct Steps {
  int64_t count, batch, width;
  bool time_major;
  // Of LSTM, which is one step, the input has no dimension for it.
  Steps(const Node& node, const Shape& x) {
    const bool one = node.is(Op::kLstm);
    time_major = !one && node.attrs.b("time_major", false);
    count = one ? 1 : x[time_major ? 0 : 1];
    batch = x[time_major ? 1 : 0];
    width = x[static_cast<size_t>(x.rank()) - 1];
  }
  Tensor Slice(const Tensor& x, const Type& type, int64_t step) const {
    std::vector<float> values;
    const auto from = x.data.As<float>();
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t at = (time_major ? step * batch + row : row * count + step) * width;
      const auto part = from.subspan(static_cast<size_t>(at), static_cast<size_t>(width));
      values.insert(values.end(), part.begin(), part.end());
    }
    return {type, Buffer::Of<float>(values)};
  }
};

// A state that the op may update: the value times one, which keeps every bit.
ValueId Updatable(Function& f, ValueId v) {
  const ValueId one = f.AddConst(DType::kF32, Shape::Scalar(), std::vector{1.0f});
  const ValueId state = f.AddNode(Op::kMul, {v, one}, {f.value(v).type}).results[0];
  f.value(state).is_variable = true;
  return state;
}

}  // namespace

Result<LstmSteps> LstmSteps::Create(Context& context, const Function& f, const Node& node,
                                    const Sample& values) {
  const Type &x = values[0].type, &h = values[1].type, &c = values[2].type;
  LstmSteps out(node);
  out.step_ = x;
  if (!node.is(Op::kLstm)) out.step_.shape.dims()[Steps(node, x.shape).time_major ? 0 : 1] = 1;
  Module module;
  Function& step = module.Add("step");
  const ValueId in = step.AddInput(out.step_), output = step.AddInput(h), cell = step.AddInput(c);
  std::vector<ValueId> operands;
  for (const ValueId v : node.operands) {
    const bool there = v != kNoValue && f.value(v).is_const();
    operands.push_back(there ? step.AddConst(f.value(v).type, f.value(v).data) : kNoValue);
  }
  operands[0] = in;
  operands[kLstmOutputState] = Updatable(step, output);
  operands[kLstmCellState] = Updatable(step, cell);
  Type result = out.step_;
  result.shape.dims().back() = h.shape.dims().back();
  const Node& made = step.AddNode(node.op, std::move(operands), {result, h, c}, node.attrs);
  FUSEBOX_ASSIGN(out.observer_,
                 Observer::Create(context, module, step.name, {made.results[1], made.results[2]}));
  return out;
}

Status LstmSteps::Widen(const Sample& values, Range& cell) {
  const Tensor& x = values[0];
  const Steps steps(*node_, x.type.shape);
  Tensor h = values[1], c = values[2];
  cell.Widen(c);
  for (int64_t i = 0; i < steps.count; ++i) {
    FUSEBOX_ASSIGN(auto states, observer_->Run({steps.Slice(x, step_, i), h, c}));
    h = std::move(states[0]);
    c = std::move(states[1]);
    cell.Widen(c);
  }
  return {};
}

}  // namespace fusebox::converter::quantize
