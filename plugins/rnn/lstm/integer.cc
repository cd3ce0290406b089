// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "plugins/rnn/lstm/engines.h"
#include "plugins/rnn/lstm/fixed_math.h"

namespace fusebox::rnn {
namespace {

// Before activation.
constexpr int32_t kGateBits = 12;
constexpr float kGateScale = 1.0F / 4096;

// Intermediate tensors: 0 to 3 have the scales of the gates before layer normalization (in the order of their
// operands), 4 that of the output before projection.
constexpr uint32_t kHidden = 4;

float IntermediateScale(const Node& node, uint32_t i) {
  const std::string subject = "intermediate " + std::to_string(i);
  if (!node.has_intermediate(i)) throw Reject{"QUANT", "is absent, so its scale is unknown", subject};
  return ScaleOf(node.intermediate(i), subject, false);
}

// Of the sums of a gate before its activation or normalization.
float GateScale(const LstmSpec& spec, const Node& node, Gate k) {
  return spec.layer_norm ? IntermediateScale(node, k) : kGateScale;
}

// Fractional bits of the cell state.
int32_t CellBits(const Node& node) {
  int exponent = 0;
  const float scale = ScaleOf(node, kCellState, true);
  if (std::frexp(scale, &exponent) != 0.5F)
    RejectOperand("QUANT", "has a scale that is not a power of two", kCellState);
  const int32_t bits = 1 - exponent;
  if (bits < 9 || bits > 15)
    RejectOperand("QUANT", "has the scale 2^" + std::to_string(-bits) + ", only 2^-15 to 2^-9 are supported",
                  kCellState);
  return bits;
}

void CheckStates(const Node& node) {
  const Tensor output = node.out(0), state = node.in(kOutputState);
  const float output_scale = ScaleOf(output, "result 0", false),
              state_scale = ScaleOf(node, kOutputState, false);
  if (output_scale != state_scale || output.quant()->zero_points[0] != state.quant()->zero_points[0])
    RejectOperand("QUANT", "has a different scale than the output", kOutputState);
  CellBits(node);
}

struct IntegerBuffers {
  explicit IntegerBuffers(const Node& node)
      : input(node.in(kInput).data<const int8_t>()),
        output(node.out(0).data<int8_t>()),
        output_state(StateMemory<int8_t>(node, kOutputState, 1)),
        cell_state(StateMemory<int16_t>(node, kCellState, 2)) {}

  const int8_t* input;
  int8_t *output, *output_state;
  int16_t* cell_state;
};

// sums = by * (values x + bias); the bias includes the contribution of the zero point of x.
struct Matrix {
  Matrix() = default;
  // `bias` may be null. `scale` is that of the result.
  Matrix(Tensor weights, const int32_t* bias_values, int64_t zero_point, float scale);

  int32_t Sum(int64_t row, const int8_t* x) const {
    const int8_t* const of_row = values + row * columns;
    int32_t sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += int32_t{of_row[k]} * int32_t{x[k]};
    return by.Times(Saturate<int32_t>(int64_t{sum} + bias[static_cast<size_t>(row)]));
  }

  const int8_t* values = nullptr;
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> bias;
  FixedPoint by;
};

Matrix::Matrix(Tensor weights, const int32_t* bias_values, int64_t zero_point, float scale)
    : values(weights.data<const int8_t>()), rows(weights.dim(0)), columns(weights.dim(1)), by(scale) {
  for (int64_t row = 0; row < rows; ++row) {
    const int8_t* const of_row = values + row * columns;
    const int64_t sum = std::accumulate(of_row, of_row + columns, int64_t{0});
    bias.push_back(Saturate<int32_t>((bias_values ? bias_values[row] : 0) - zero_point * sum));
  }
}

struct GateWeights {
  Matrix input, recurrent;
  const int16_t* peephole = nullptr;
  FixedPoint peephole_by;
  FixedNorm norm;
};

GateWeights GateOf(const LstmSpec& spec, const Node& node, Gate k) {
  GateWeights gate;
  const int32_t* const bias = node.in(kGateBias + k).data<const int32_t>();
  const float scale = GateScale(spec, node, k);
  const fbx_quant &x = *node.in(kInput).quant(), &h = *node.in(kOutputState).quant();
  const uint32_t w = kInputWeights + k, r = kRecurrentWeights + k;
  // Products of scales in f32, as in TFLite, for bit-exact multipliers.
  gate.input = Matrix(node.in(w), spec.layer_norm ? nullptr : bias, x.zero_points[0],
                      ScaleOf(node, w, true) * x.scales[0] / scale);
  gate.recurrent =
      Matrix(node.in(r), nullptr, h.zero_points[0], ScaleOf(node, r, true) * h.scales[0] / scale);
  if (spec.layer_norm) {
    const uint32_t n = kLayerNorm + k;
    gate.norm = FixedNorm(node.in(n).data<const int16_t>(), bias, ScaleOf(node, n, true));
  }
  if (spec.peephole && k != kCellGate) {
    const uint32_t p = k == kOutGate ? kPeephole + 2 : kPeephole + k;
    gate.peephole = node.in(p).data<const int16_t>();
    gate.peephole_by = FixedPoint(std::ldexp(ScaleOf(node, p, true), -CellBits(node)) / scale);
  }
  return gate;
}

class IntegerLstm final : public RowEngine<LstmSpec, IntegerBuffers> {
 public:
  IntegerLstm(const LstmSpec& spec, const Node& node);

 private:
  // Four gates of 16 bits and the hidden values of 8.
  size_t PartBytes(const LstmSpec& spec) const override {
    return ScratchReader::Bytes(static_cast<size_t>(spec.cells) * 9);
  }
  void RunRows(const LstmSpec& spec, const IntegerBuffers& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override;
  void Step(const LstmSpec& spec, const int8_t* x, int8_t* h, int16_t* c, int16_t* scratch) const;
  void RunGate(const LstmSpec& spec, Gate k, const int8_t* x, const int8_t* h, const int16_t* c,
               int16_t* values) const;

  GateWeights gates_[kGates];
  int32_t cell_bits_;
  int32_t cell_clip_ = 0;  // 0: none
  FixedPoint hidden_by_;
  int32_t hidden_zero_ = 0;
  Matrix projection_;
  int32_t output_zero_ = 0;      // of the projection
  int32_t projection_clip_ = 0;  // 0: none
};

IntegerLstm::IntegerLstm(const LstmSpec& spec, const Node& node) : cell_bits_(CellBits(node)) {
  for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
    if (spec.HasGate(k)) gates_[k] = GateOf(spec, node, k);
  }
  const fbx_quant& output = *node.in(kOutputState).quant();
  const fbx_quant& hidden = spec.projection ? *node.intermediate(kHidden).quant() : output;
  hidden_by_ = FixedPoint(static_cast<float>(std::ldexp(1.0, -30) / hidden.scales[0]));
  hidden_zero_ = static_cast<int32_t>(hidden.zero_points[0]);
  if (spec.projection) {
    // The zero point of the hidden values was subtracted, so its contribution is added here.
    projection_ = Matrix(
        node.in(kProjection),
        node.has_in(kProjectionBias) ? node.in(kProjectionBias).data<const int32_t>() : nullptr,
        -hidden.zero_points[0], ScaleOf(node, kProjection, true) * hidden.scales[0] / output.scales[0]);
    output_zero_ = static_cast<int32_t>(output.zero_points[0]);
    const float clip = static_cast<float>(spec.projection_clip) / output.scales[0];
    projection_clip_ = static_cast<int32_t>(std::min(clip, 127.0F));
  }
  if (spec.cell_clip > 0)
    cell_clip_ = static_cast<int32_t>(std::min(std::ldexp(spec.cell_clip, cell_bits_), 32767.0));
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
    if (spec.HasGate(k)) RunGate(spec, k, x, h, c, gate(k));
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

void IntegerLstm::RunRows(const LstmSpec& spec, const IntegerBuffers& buffers, int64_t begin, int64_t end,
                          std::byte* scratch) const {
  for (int64_t row = begin; row < end; ++row) {
    int16_t* const c = buffers.cell_state + row * spec.cells;
    RunRow(spec, row, buffers.input, buffers.output_state + row * spec.outputs, spec.outputs, buffers.output,
           [&](const int8_t* x, int8_t* h) { Step(spec, x, h, c, reinterpret_cast<int16_t*>(scratch)); });
  }
}

}  // namespace

void CheckIntegerLstm(const LstmSpec& spec, const Node& node) {
  if (spec.activation != Activation::kTanh)
    throw Reject{"ATTR", "is not TANH", "attr fused_activation_function"};
  for (uint32_t k = 0; spec.layer_norm && k < kGates; ++k) {
    if (spec.HasGate(k)) IntermediateScale(node, k);
  }
  if (spec.projection) IntermediateScale(node, kHidden);
  for (uint32_t i = kInputWeights; i < node.in_count(); ++i) {
    if (!node.has_in(i) || i == kOutputState || i == kCellState) continue;
    RequireConstant(node, i);
    if (IsInt8(node, i)) CheckQuantizedWeights(node, i);
    if (node.in(i).dtype() == FBX_I16) ScaleOf(node, i, true);
  }
  ScaleOf(node, kInput, false);
  CheckStates(node);
}

std::unique_ptr<const LstmEngine> MakeIntegerLstm(const LstmSpec& spec, const Node& node) {
  CheckIntegerLstm(spec, node);
  return std::make_unique<const IntegerLstm>(spec, node);
}

}  // namespace fusebox::rnn
