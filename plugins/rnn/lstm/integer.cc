// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/integer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "plugins/rnn/cell/quantized_weights.h"
#include "plugins/rnn/lstm/fixed_functions.h"

namespace fusebox::rnn {
namespace {

// Before activation.
constexpr int32_t kGateBits = 12;
constexpr float kGateScale = 1.0F / 4096;

std::string Subject(uint32_t operand) { return "operand " + std::to_string(operand); }

float ScaleIn(const Node& node, uint32_t operand, bool symmetric) {
  return ScaleOf(node.in(operand), Subject(operand), symmetric);
}

// The file says the scales of what the op computes on the way: 0 to 3, of the gates before layer
// normalization (in the order of their operands), and 4, of the output before projection.
constexpr uint32_t kHidden = 4;

float ScaleWithin(const Node& node, uint32_t i) {
  const std::string subject = "intermediate " + std::to_string(i);
  if (!node.has_intermediate(i)) throw Reject{"QUANT", "is not there to say its scale", subject};
  return ScaleOf(node.intermediate(i), subject, false);
}

// What the gate's sums are in before its activation or normalization.
float GateScale(const LstmSpec& spec, const Node& node, Gate k) {
  return spec.layer_norm ? ScaleWithin(node, k) : kGateScale;
}

// Of the fraction of the cell state.
int32_t CellBits(const Node& node) {
  int exponent = 0;
  const float scale = ScaleIn(node, kCellState, true);
  if (std::frexp(scale, &exponent) != 0.5F)
    throw Reject{"QUANT", "has a scale that is no power of two", Subject(kCellState)};
  const int32_t bits = 1 - exponent;
  if (bits < 9 || bits > 15)
    throw Reject{"QUANT", "has the scale 2^" + std::to_string(-bits) + ", done are 2^-15 to 2^-9",
                 Subject(kCellState)};
  return bits;
}

void CheckStates(const Node& node) {
  const Tensor output = node.out(0), state = node.in(kOutputState);
  const float of_output = ScaleOf(output, "result 0", false),
              of_state = ScaleOf(state, Subject(kOutputState), false);
  if (of_output != of_state || output.quant()->zero_points[0] != state.quant()->zero_points[0])
    throw Reject{"QUANT", "has another scale than the output", Subject(kOutputState)};
  CellBits(node);
}

}  // namespace

void IntegerLstm::Check(const LstmSpec& spec, const Node& node) {
  if (spec.diagonal)
    throw Reject{"OPERANDS", "is diagonal, which is done in f32 only", Subject(kRecurrentWeights + 1)};
  if (spec.activation != CellActivation::kTanh)
    throw Reject{"ATTR", "is not TANH", "attr fused_activation_function"};
  for (uint32_t k = 0; spec.layer_norm && k < kGates; ++k) {
    if (!(spec.cifg && k == kInGate)) ScaleWithin(node, k);
  }
  if (spec.projection) ScaleWithin(node, kHidden);
  for (uint32_t i = kInputWeights; i < node.in_count(); ++i) {
    if (!node.has_in(i) || i == kOutputState || i == kCellState) continue;
    NeedConstant(node, i);
    if (node.in(i).dtype() == FBX_I8) CheckStoredWeights(node, i);
    if (node.in(i).dtype() == FBX_I16) ScaleIn(node, i, true);
  }
  ScaleIn(node, kInput, false);
  CheckStates(node);
}

int32_t IntegerLstm::Matrix::Sum(int64_t row, const int8_t* x) const {
  const int8_t* const of_row = values + row * columns;
  int32_t sum = 0;
  for (int64_t k = 0; k < columns; ++k) sum += int32_t{of_row[k]} * int32_t{x[k]};
  return by.Times(Saturate<int32_t>(int64_t{sum} + bias[static_cast<size_t>(row)]));
}

// `bias` may be null. `scale` is that of the result's step.
IntegerLstm::Matrix IntegerLstm::MatrixOf(const Node& node, uint32_t operand, const int32_t* bias,
                                          int64_t zero_point, float scale) const {
  const Tensor t = node.in(operand);
  Matrix matrix{t.data<const int8_t>(), t.dim(0), t.dim(1), {}, FixedPoint(scale)};
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const int8_t* const values = matrix.values + row * matrix.columns;
    const int64_t sum = std::accumulate(values, values + matrix.columns, int64_t{0});
    matrix.bias.push_back(Saturate<int32_t>((bias ? bias[row] : 0) - zero_point * sum));
  }
  return matrix;
}

IntegerLstm::GateWeights IntegerLstm::GateOf(const LstmSpec& spec, const Node& node, Gate k) const {
  GateWeights gate;
  const int32_t* const bias = node.in(kGateBias + k).data<const int32_t>();
  const float scale = GateScale(spec, node, k);
  const fbx_quant &x = *node.in(kInput).quant(), &h = *node.in(kOutputState).quant();
  const uint32_t w = kInputWeights + k, r = kRecurrentWeights + k;
  // Products of scales in f32, as TFLite has them: the multipliers come out to the bit.
  gate.input = MatrixOf(node, w, spec.layer_norm ? nullptr : bias, x.zero_points[0],
                        ScaleIn(node, w, true) * x.scales[0] / scale);
  gate.recurrent = MatrixOf(node, r, nullptr, h.zero_points[0], ScaleIn(node, r, true) * h.scales[0] / scale);
  if (spec.layer_norm) {
    const uint32_t n = kLayerNorm + k;
    gate.norm = FixedNorm(node.in(n).data<const int16_t>(), bias, ScaleIn(node, n, true));
  }
  if (spec.peephole && k != kCellGate) {
    const uint32_t p = k == kOutGate ? kPeephole + 2 : kPeephole + k;
    gate.peephole = node.in(p).data<const int16_t>();
    gate.peephole_by = FixedPoint(std::ldexp(ScaleIn(node, p, true), -cell_bits_) / scale);
  }
  return gate;
}

IntegerLstm::IntegerLstm(const LstmSpec& spec, const Node& node) {
  Check(spec, node);
  cell_bits_ = CellBits(node);
  for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
    if (!(spec.cifg && k == kInGate)) gates_[k] = GateOf(spec, node, k);
  }
  const fbx_quant& output = *node.in(kOutputState).quant();
  const fbx_quant& hidden = spec.projection ? *node.intermediate(kHidden).quant() : output;
  hidden_by_ = FixedPoint(static_cast<float>(std::ldexp(1.0, -30) / hidden.scales[0]));
  hidden_zero_ = static_cast<int32_t>(hidden.zero_points[0]);
  if (spec.projection) {
    // The hidden values have their zero point subtracted, and so its share is added here.
    projection_ = MatrixOf(
        node, kProjection,
        node.has_in(kProjectionBias) ? node.in(kProjectionBias).data<const int32_t>() : nullptr,
        -hidden.zero_points[0], ScaleIn(node, kProjection, true) * hidden.scales[0] / output.scales[0]);
    output_zero_ = static_cast<int32_t>(output.zero_points[0]);
    const float clip = static_cast<float>(spec.projection_clip) / output.scales[0];
    projection_clip_ = static_cast<int32_t>(std::min(clip, 127.0F));
  }
  if (spec.cell_clip > 0)
    cell_clip_ = static_cast<int32_t>(std::min(std::ldexp(spec.cell_clip, cell_bits_), 32767.0));
}

size_t IntegerLstm::ScratchBytes(const LstmSpec& spec) {
  // Four gates of 16 bits and the hidden values of 8.
  return (static_cast<size_t>(spec.cells) * 9 + 63) / 64 * 64;
}

void IntegerLstm::RunGate(const LstmSpec& spec, Gate k, const int8_t* x, const int8_t* h, const int16_t* c,
                          int16_t* values) const {
  const GateWeights& gate = gates_[k];
  for (int64_t i = 0; i < spec.cells; ++i) {
    int16_t sum = Saturate<int16_t>(gate.input.Sum(i, x));
    sum = Saturate<int16_t>(int64_t{gate.recurrent.Sum(i, h)} + sum);
    if (gate.peephole)
      sum = Saturate<int16_t>(int64_t{gate.peephole_by.Times(int32_t{gate.peephole[i]} * c[i])} + sum);
    values[i] = sum;
  }
  if (spec.layer_norm) gate.norm.Apply(values, spec.cells);
  for (int64_t i = 0; i < spec.cells; ++i) {
    values[i] = k == kCellGate ? FixedTanh(values[i], kGateBits) : FixedSigmoid(values[i]);
  }
}

void IntegerLstm::Step(const LstmSpec& spec, const int8_t* x, int8_t* h, int16_t* c, int16_t* scratch) const {
  const int64_t cells = spec.cells;
  const auto gate = [&](Gate k) { return scratch + k * cells; };
  for (const Gate k : {kInGate, kForgetGate, kCellGate}) {
    if (!(spec.cifg && k == kInGate)) RunGate(spec, k, x, h, c, gate(k));
  }
  for (int64_t i = 0; i < cells; ++i) {
    const int32_t forget = gate(kForgetGate)[i], in = spec.cifg ? 32767 - forget : gate(kInGate)[i];
    const int32_t kept = ShiftRounded(forget * c[i], 15),
                  added = ShiftRounded(in * gate(kCellGate)[i], 30 - cell_bits_);
    c[i] = Saturate<int16_t>(int64_t{kept} + added);
    if (cell_clip_ > 0) c[i] = static_cast<int16_t>(std::clamp<int32_t>(c[i], -cell_clip_, cell_clip_));
  }
  RunGate(spec, kOutGate, x, h, c, gate(kOutGate));
  auto* const hidden = spec.projection ? reinterpret_cast<int8_t*>(scratch + 4 * cells) : h;
  for (int64_t i = 0; i < cells; ++i) {
    const int32_t out = gate(kOutGate)[i] * FixedTanh(c[i], cell_bits_);
    hidden[i] = Saturate<int8_t>(int64_t{hidden_by_.Times(out)} - hidden_zero_);
  }
  for (int64_t i = 0; spec.projection && i < spec.outputs; ++i) {
    h[i] = Saturate<int8_t>(int64_t{projection_.Sum(i, hidden)} + output_zero_);
    if (projection_clip_ > 0)
      h[i] = static_cast<int8_t>(std::clamp<int32_t>(h[i], -projection_clip_, projection_clip_));
  }
}

void IntegerLstm::Run(const LstmSpec& spec, const Buffers& buffers, int64_t begin, int64_t end,
                      std::byte* scratch) const {
  for (int64_t row = begin; row < end; ++row) {
    int8_t* const h = buffers.output_state + row * spec.outputs;
    int16_t* const c = buffers.cell_state + row * spec.cells;
    for (int64_t step = 0; step < spec.steps; ++step) {
      const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
      Step(spec, buffers.input + at * spec.inputs, h, c, reinterpret_cast<int16_t*>(scratch));
      std::copy_n(h, spec.outputs, buffers.output + at * spec.outputs);
    }
  }
}

}  // namespace fusebox::rnn
