// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/keras_layer.h"

#include <utility>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/common/text.h"

namespace fusebox::rnn {
namespace {

using common::ShapeText;

bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace

Value StepOf(Build& build, Value sequence, int time_axis, bool last, bool keep_axis) {
  const int32_t others = time_axis == 0 ? 6 : 5;
  const int32_t time = 1 << time_axis;
  const int32_t step = last ? -1 : 0;
  const Value begin = time_axis == 0 ? build.i32({step, 0, 0}) : build.i32({0, step, 0});
  const int32_t after = last ? 0 : 1;
  const Value end = time_axis == 0 ? build.i32({after, 0, 0}) : build.i32({0, after, 0});
  return build.builtin("STRIDED_SLICE", {sequence, begin, end, build.i32({1, 1, 1})})
      .attr("begin_mask", others)
      .attr("end_mask", keep_axis && last ? 7 : others)
      .attr("shrink_axis_mask", keep_axis ? 0 : time)[0];
}

std::string KerasLayer::subject(uint32_t operand) const {
  static constexpr const char* kStates[] = {"init_h", "init_c"};
  std::string name = "inputs";
  if (operand != kInputs) {
    name = position_.name;
    name += operand == kernel()      ? "kernel"
            : operand == recurrent() ? "recurrent_kernel"
            : operand == bias()      ? "bias"
            : operand == mask()      ? "mask"
                                     : kStates[operand - first_state()];
  }
  return common::Subject(operand) + " (" + name + ")";
}

void KerasLayer::CheckArity() const {
  const uint32_t ins = states_ + 4;
  const uint32_t outs = states_ + 2;
  site_.require(site_.in_count() == ins || site_.in_count() == ins + 1, "ARITY",
                "has " + std::to_string(site_.in_count()) + " operands, expected " + std::to_string(ins) +
                    ", or one more with a mask");
  site_.require(site_.out_count() == outs || site_.out_count() == outs + 1, "ARITY",
                "has " + std::to_string(site_.out_count()) + " results, expected " + std::to_string(outs) +
                    " or " + std::to_string(outs + 1));
}

void KerasLayer::CheckOperand(uint32_t i, int rank) const {
  const Tensor t = site_.in(i);
  site_.require(t.present(), "ARITY", "is absent", subject(i));
  site_.require(t.dtype() == FBX_F32, "DTYPE",
                std::string("is ") + dtype_name(t.dtype()) + ", only f32 is supported", subject(i));
  site_.require(t.rank() >= 0, "RANK", "has an unknown rank", subject(i));
  site_.require(t.rank() == rank, "RANK",
                "has shape " + ShapeText(t) + ", expected rank " + std::to_string(rank), subject(i));
}

void KerasLayer::CheckWeights(uint32_t i) const {
  const Tensor t = site_.in(i);
  const bool bytes = t.present() && t.dtype() == FBX_I8;
  if (!bytes) CheckOperand(i, 2);
  site_.require(t.rank() == 2, "RANK", "has shape " + ShapeText(t) + ", expected rank 2", subject(i));
  site_.require(!bytes || !diagonal(), "DTYPE", "is i8, which a diagonal state does not support", subject(i));
  site_.require(t.dtype() == site_.in(kernel()).dtype(), "DTYPE",
                std::string("is ") + dtype_name(t.dtype()) + ", unlike the kernel", subject(i));
  CheckConstant(i);
}

void KerasLayer::CheckConstant(uint32_t i) const {
  const Tensor t = site_.in(i);
  site_.require(!t.is_variable(), "NONCONST", "is read from a variable that the model changes", subject(i));
  site_.require(t.is_const(), "NONCONST", "is computed, not constant", subject(i));
  site_.require(t.is_static(), "SHAPE", "has shape " + ShapeText(t) + ", expected known sizes", subject(i));
}

void KerasLayer::CheckOperands() const {
  CheckOperand(kInputs, 3);
  for (uint32_t state = 0; state < states_; ++state) CheckOperand(first_state() + state, 2);
  for (const uint32_t weights : {kernel(), recurrent()}) CheckWeights(weights);
}

void KerasLayer::CheckKernels() const {
  const Tensor w = site_.in(kernel());
  const Tensor r = site_.in(recurrent());
  const int64_t features = site_.in(kInputs).dim(2);
  const std::string columns =
      ", but " + std::to_string(units()) + " units need " + std::to_string(gates_ * units()) + " columns";
  site_.require(!diagonal() || r.dim(0) == 1, "SHAPE", "has shape " + ShapeText(r) + ", expected one row",
                subject(recurrent()));
  site_.require(units() > 0, "SHAPE", "has no units", subject(recurrent()));
  site_.require(r.dim(1) == gates_ * units(), "SHAPE", "has shape " + ShapeText(r) + columns,
                subject(recurrent()));
  site_.require(w.dim(1) == gates_ * units(), "SHAPE", "has shape " + ShapeText(w) + columns,
                subject(kernel()));
  site_.require(
      !Differ(w.dim(0), features), "SHAPE",
      "has shape " + ShapeText(w) + ", but the inputs have " + std::to_string(features) + " features",
      subject(kernel()));
}

void KerasLayer::CheckBias(int dimension) const {
  const Tensor b = site_.in(bias());
  site_.require(b.dim(dimension) == gates_ * units(), "SHAPE",
                "has shape " + ShapeText(b) + ", but " + std::to_string(units()) + " units need " +
                    std::to_string(gates_ * units()) + " values",
                subject(bias()));
}

void KerasLayer::CheckStates() const {
  const int64_t batch = site_.in(kInputs).dim(1 - time_axis());
  for (uint32_t i = first_state(); i < kernel(); ++i) {
    const Tensor state = site_.in(i);
    site_.require(!Differ(state.dim(1), units()), "SHAPE",
                  "has shape " + ShapeText(state) + ", but there are " + std::to_string(units()) + " units",
                  subject(i));
    site_.require(!Differ(state.dim(0), batch), "SHAPE",
                  "has shape " + ShapeText(state) + ", but the batch is " + std::to_string(batch),
                  subject(i));
  }
}

bool KerasLayer::SequenceIsLast() const {
  if (site_.attrs().has("sequence")) return !site_.attrs().b("sequence");
  const Tensor sequence = site_.out(this->sequence());
  return sequence.rank() == 3 && sequence.dim(time_axis()) == 1 && site_.in(kInputs).dim(time_axis()) != 1;
}

void KerasLayer::CheckSequence() const {
  const Tensor sequence = site_.out(this->sequence());
  if (sequence.uses() == 0 || SequenceIsLast()) return;
  const int64_t steps = site_.in(kInputs).dim(time_axis());
  const int64_t declared = sequence.rank() == 3 ? sequence.dim(time_axis()) : -1;
  site_.require(steps < 0 || steps == 1 || declared >= 0 || site_.attrs().has("sequence"), "SHAPE",
                "has an unknown length, so it may be the whole sequence or its last step",
                "result " + std::to_string(this->sequence()) + " (sequence)");
  site_.require(
      !Differ(steps, declared), "SHAPE",
      "has shape " + ShapeText(sequence) + ", but the inputs have " + std::to_string(steps) + " steps",
      "result " + std::to_string(this->sequence()) + " (sequence)");
}

void KerasLayer::CheckMask() const {
  if (!masked()) return;
  const Tensor m = site_.in(mask());
  const Tensor x = site_.in(kInputs);
  site_.require(site_.in(kernel()).dtype() == FBX_F32, "DTYPE", "is i8, which a mask does not support",
                subject(kernel()));
  site_.require(m.present() && m.dtype() == FBX_BOOL, "DTYPE",
                std::string("is ") + (m.present() ? dtype_name(m.dtype()) : "absent") +
                    ", only a boolean mask is supported",
                subject(mask()));
  site_.require(m.rank() == 2 && !Differ(m.dim(0), x.dim(0)) && !Differ(m.dim(1), x.dim(1)), "SHAPE",
                "has shape " + ShapeText(m) + ", but the inputs have " + ShapeText(x), subject(mask()));
  site_.require(site_.attrs().has("zero_output_for_mask"), "ATTR",
                "is missing, so the outputs of masked steps are unknown", "attr zero_output_for_mask");
}

void KerasLayer::CheckActivations() const {
  for (const auto& [key, name] :
       {std::pair{"activation", activation()}, {"recurrent_activation", recurrent_activation()}})
    site_.require(common::KerasActivation(name).has_value(), "ATTR",
                  "is " + std::string(name) + ", which is not supported", std::string("attr ") + key);
}

void KerasLayer::CheckLayer() const {
  CheckOperands();
  CheckOperand(bias(), 1);
  CheckConstant(bias());
  CheckKernels();
  CheckBias(0);
  CheckStates();
  CheckSequence();
}

std::string_view KerasLayer::builtin_activation() const {
  if (const auto name = common::BuiltinActivationName(activation())) return *name;
  throw Reject{"ATTR", "is " + std::string(activation()) + ", which the fused op does not support",
               "attr activation"};
}

bool KerasLayer::HasBuiltinActivations() const {
  return recurrent_activation() == "sigmoid" && common::BuiltinActivationName(activation());
}

Value KerasLayer::Inputs(Build& build) const {
  return go_backwards() ? build.reverse(build.in(kInputs), time_axis()) : build.in(kInputs);
}

void KerasLayer::SetOutputs(Build& build, Value sequence, Value unused) const {
  const bool used = unused == no_value || site_.out(last_output()).uses() > 0;
  build.result(last_output(), used ? StepOf(build, sequence, time_axis(), true, false) : unused);
  build.result(this->sequence(),
               SequenceIsLast() ? StepOf(build, sequence, time_axis(), true, true) : sequence);
  if (site_.out_count() < states_ + 3) return;
  const float cpu = 1.0f;  // Keras: the generic implementation ran
  build.result(states_ + 2, build.constant<float>({&cpu, 1}, {}));
}

void KerasLayer::SetLstmWeights(Build& build, Value* operands) const {
  const auto set_gates = [&](uint32_t first, Value stacked) {
    const std::vector<Value> gates = build.split(stacked, 0, 4);
    for (uint32_t gate = 0; gate < 4; ++gate) operands[first + gate] = gates[gate];
  };
  set_gates(0, build.transpose(build.in(kernel()), {1, 0}));
  set_gates(4, diagonal() ? build.reshape(build.in(recurrent()), {-1})
                          : build.transpose(build.in(recurrent()), {1, 0}));
  set_gates(11, build.in(bias()));
}

}  // namespace fusebox::rnn
