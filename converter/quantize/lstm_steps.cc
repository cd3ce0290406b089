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
  // LSTM is one step: its input has no time dimension.
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

// A state that the op may update: the value times one, which is exact.
ValueId Updatable(Function& f, ValueId v) {
  const ValueId state = Rewriter(f).Copy(v);
  f.value(state).is_variable = true;
  return state;
}

}  // namespace

Result<LstmSteps> LstmSteps::Create(Context& context, const Function& f, const Node& node,
                                    const Sample& values) {
  const Steps steps(node, values[0].type.shape);
  LstmSteps out(node);
  out.step_ = values[0].type;
  if (!node.is(Op::kLstm)) out.step_.shape.dims()[steps.time_major ? 0 : 1] = 1;
  // States may have any shape with this number of elements.
  const int64_t cells = f.value(node.operands[kBias + 1]).type.shape[0];
  const ValueId projection = node.operands[kProjection];
  const int64_t outputs = projection == kNoValue ? cells : f.value(projection).type.shape[0];
  out.output_ = {DType::kF32, {steps.batch, outputs}};
  out.cell_ = {DType::kF32, {steps.batch, cells}};
  Module module;
  Function& step = module.Add("step");
  const ValueId in = step.AddInput(out.step_);
  const ValueId h = step.AddInput(out.output_);
  const ValueId c = step.AddInput(out.cell_);
  std::vector<ValueId> operands;
  for (const ValueId v : node.operands) {
    const bool there = v != kNoValue && f.value(v).is_const();
    operands.push_back(there ? step.AddConst(f.value(v).type, f.value(v).data) : kNoValue);
  }
  operands[0] = in;
  operands[kLstmOutputState] = Updatable(step, h);
  operands[kLstmCellState] = Updatable(step, c);
  Type result = out.step_;
  result.shape.dims().back() = outputs;
  const Node& made = step.AddNode(node.op, std::move(operands), {result, out.output_, out.cell_}, node.attrs);
  std::vector<ValueId> seen = {made.results[1], made.results[2]};
  for (const auto& [intermediate, value] : AddLstmSums(step, made, h, c)) {
    out.intermediates_.push_back(intermediate);
    seen.push_back(value);
  }
  // One thread: waking others takes longer than a step.
  FUSEBOX_ASSIGN(out.observer_, Observer::Create(context, module, step.name, std::move(seen), 1));
  return out;
}

Result<Sample> LstmSteps::Widen(const Sample& values, LstmRanges& ranges) {
  const Tensor& x = values[0];
  const Steps steps(*node_, x.type.shape);
  Tensor h{output_, values[1].data};
  Tensor c{cell_, values[2].data};
  ranges.cell.Widen(c);
  for (int64_t i = 0; i < steps.count; ++i) {
    FUSEBOX_ASSIGN(auto seen, observer_->Run({steps.Slice(x, step_, i), h, c}));
    h = std::move(seen[0]);
    c = std::move(seen[1]);
    ranges.cell.Widen(c);
    for (size_t k = 0; k < intermediates_.size(); ++k) ranges.within[intermediates_[k]].Widen(seen[2 + k]);
  }
  return Sample{std::move(h), std::move(c)};
}

}  // namespace fusebox::converter::quantize
