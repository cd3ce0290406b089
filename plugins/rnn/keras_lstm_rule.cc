// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/keras_lstm_rule.h"

#include <string>
#include <vector>

namespace fusebox::rnn {
namespace {

enum Operand : uint32_t { kInputs, kInitH, kInitC, kKernel, kRecurrentKernel, kBias, kOperandCount };
enum Result : uint32_t { kLastOutput, kSequence, kFinalH, kFinalC, kRuntime, kResultCount };

std::string Subject(uint32_t operand) {
  static constexpr const char* kNames[] = {"inputs", "init_h",           "init_c",
                                           "kernel", "recurrent_kernel", "bias"};
  return "operand " + std::to_string(operand) + " (" + kNames[operand] + ")";
}

std::string ShapeText(const Tensor& t) {
  std::string text = "[";
  for (const int64_t d : t.dims()) {
    if (text.size() > 1) text += ",";
    text += d < 0 ? "?" : std::to_string(d);
  }
  return text + "]";
}

bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

bool TimeMajor(const Site& site) { return site.attrs().b("time_major", false); }
int TimeAxis(const Site& site) { return TimeMajor(site) ? 0 : 1; }

void CheckArity(const Site& site) {
  site.require(site.in_count() != kOperandCount + 1, "ARITY",
               "has 7 operands: a mask or sequence lengths, which the fused op cannot follow", "operand 6");
  site.arity(kOperandCount, kResultCount);
}

void CheckOperand(const Site& site, uint32_t i, int rank) {
  const Tensor t = site.in(i);
  site.require(t.present(), "ARITY", "is absent", Subject(i));
  site.require(t.dtype() == FBX_F32, "DTYPE",
               std::string("is ") + dtype_name(t.dtype()) + ", only f32 is done", Subject(i));
  site.require(t.rank() >= 0, "RANK", "has an unknown rank", Subject(i));
  site.require(t.rank() == rank, "RANK",
               "has shape " + ShapeText(t) + ", expected rank " + std::to_string(rank), Subject(i));
}

void CheckConstant(const Site& site, uint32_t i) {
  const Tensor t = site.in(i);
  site.require(!t.is_variable(), "NONCONST", "is read from a variable that the model changes", Subject(i));
  site.require(t.is_const(), "NONCONST", "is computed, not constant", Subject(i));
  site.require(t.is_static(), "SHAPE", "has shape " + ShapeText(t) + ", expected known sizes", Subject(i));
}

void CheckWeights(const Site& site) {
  const Tensor kernel = site.in(kKernel), recurrent = site.in(kRecurrentKernel), bias = site.in(kBias);
  const int64_t units = recurrent.dim(0), features = site.in(kInputs).dim(2);
  const std::string columns = std::to_string(units) + " units need " + std::to_string(4 * units);
  site.require(units > 0, "SHAPE", "has no units", Subject(kRecurrentKernel));
  site.require(recurrent.dim(1) == 4 * units, "SHAPE",
               "has shape " + ShapeText(recurrent) + ", but " + columns + " columns",
               Subject(kRecurrentKernel));
  site.require(kernel.dim(1) == 4 * units, "SHAPE",
               "has shape " + ShapeText(kernel) + ", but " + columns + " columns", Subject(kKernel));
  site.require(
      !Differ(kernel.dim(0), features), "SHAPE",
      "has shape " + ShapeText(kernel) + ", but the inputs have " + std::to_string(features) + " features",
      Subject(kKernel));
  site.require(bias.dim(0) == 4 * units, "SHAPE",
               "has shape " + ShapeText(bias) + ", but " + columns + " values", Subject(kBias));
}

void CheckState(const Site& site, uint32_t i) {
  const int64_t batch = site.in(kInputs).dim(1 - TimeAxis(site)), units = site.in(kRecurrentKernel).dim(0);
  const Tensor state = site.in(i);
  site.require(!Differ(state.dim(1), units), "SHAPE",
               "has shape " + ShapeText(state) + ", but there are " + std::to_string(units) + " units",
               Subject(i));
  site.require(!Differ(state.dim(0), batch), "SHAPE",
               "has shape " + ShapeText(state) + ", but the batch is " + std::to_string(batch), Subject(i));
}

// Newer Keras declares the sequence as one step long when only the last output is wanted.
bool SequenceIsLast(const Site& site) {
  const Tensor sequence = site.out(kSequence);
  return sequence.rank() == 3 && sequence.dim(TimeAxis(site)) == 1 &&
         site.in(kInputs).dim(TimeAxis(site)) != 1;
}

void CheckSequence(const Site& site) {
  const Tensor sequence = site.out(kSequence);
  if (sequence.uses() == 0 || SequenceIsLast(site)) return;
  const int64_t steps = site.in(kInputs).dim(TimeAxis(site));
  const int64_t declared = sequence.rank() == 3 ? sequence.dim(TimeAxis(site)) : -1;
  site.require(steps < 0 || steps == 1 || declared >= 0, "SHAPE",
               "is of unknown length, so that it may be the whole sequence or its last step",
               "result 1 (sequence)");
  site.require(
      !Differ(steps, declared), "SHAPE",
      "has shape " + ShapeText(sequence) + ", but the inputs have " + std::to_string(steps) + " steps",
      "result 1 (sequence)");
}

// The last time step of the op's output. A slice, not the final state, so that files that nobody asks for a
// state read no variable tensor: other runtimes and their delegates know this form.
Value LastStep(Build& build, Value output, int time_axis, bool keep_axis) {
  const int32_t others = time_axis == 0 ? 6 : 5;
  const int32_t time = 1 << time_axis;
  const Value begin = time_axis == 0 ? build.i32({-1, 0, 0}) : build.i32({0, -1, 0});
  return build.builtin("STRIDED_SLICE", {output, begin, build.i32({0, 0, 0}), build.i32({1, 1, 1})})
      .attr("begin_mask", others)
      .attr("end_mask", keep_axis ? 7 : others)
      .attr("shrink_axis_mask", keep_axis ? 0 : time)[0];
}

// The 24 operands of the op. No peephole (9-11), no projection (16, 17), no layer normalisation (20-23).
std::vector<Value> LstmOperands(const Site& site, Build& build) {
  std::vector<Value> operands(24, none);
  operands[0] = site.attrs().b("go_backwards", false) ? build.reverse(build.in(kInputs), TimeAxis(site))
                                                      : build.in(kInputs);
  const auto put_gates = [&](uint32_t first, Value stacked) {
    const std::vector<Value> gates = build.split(stacked, 0, 4);
    for (uint32_t gate = 0; gate < 4; ++gate) operands[first + gate] = gates[gate];
  };
  put_gates(1, build.transpose(build.in(kKernel), {1, 0}));
  put_gates(5, build.transpose(build.in(kRecurrentKernel), {1, 0}));
  put_gates(12, build.in(kBias));
  operands[18] = build.in(kInitH);
  operands[19] = build.in(kInitC);
  return operands;
}

}  // namespace

void KerasLstmRule::match(const Site& site) {
  CheckArity(site);
  CheckOperand(site, kInputs, 3);
  for (const uint32_t state : {kInitH, kInitC}) CheckOperand(site, state, 2);
  for (const uint32_t weights : {kKernel, kRecurrentKernel}) CheckOperand(site, weights, 2);
  CheckOperand(site, kBias, 1);
  for (const uint32_t weights : {kKernel, kRecurrentKernel, kBias}) CheckConstant(site, weights);
  CheckWeights(site);
  for (const uint32_t state : {kInitH, kInitC}) CheckState(site, state);
  CheckSequence(site);
}

void KerasLstmRule::rewrite(const Site& site, Build& build) {
  const int time_axis = TimeAxis(site);
  const std::vector<Value> operands = LstmOperands(site, build);
  // Keras never clips the cell.
  const auto lstm = build.builtin("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, 3)
                        .attr("fused_activation_function", "TANH")
                        .attr("cell_clip", 0.0)
                        .attr("proj_clip", 0.0)
                        .attr("time_major", TimeMajor(site));
  const Value output = lstm[0];
  build.result(kLastOutput, LastStep(build, output, time_axis, false));
  build.result(kSequence, SequenceIsLast(site) ? LastStep(build, output, time_axis, true) : output);
  build.result(kFinalH, lstm[1]);
  build.result(kFinalC, lstm[2]);
  const float cpu = 1.0f;  // what Keras says when its generic implementation ran
  build.result(kRuntime, build.constant<float>({&cpu, 1}, {}));
}

}  // namespace fusebox::rnn
