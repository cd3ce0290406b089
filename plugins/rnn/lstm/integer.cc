// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plugins/rnn/cell/integer_matrix.h"
#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/lstm/engines.h"
#include "plugins/rnn/lstm/fixed_math.h"

namespace fusebox::rnn {
namespace {

// Before activation.
constexpr int32_t kGateBits = 12;
constexpr float kGateScale = 1.0F / 4096;

// Intermediate tensors: 0 to 3 have the scales of the gates before layer normalization (in the order of their
// operands), 4 the scale of the output before projection.
constexpr uint32_t kHidden = 4;

float IntermediateScale(const Node& node, uint32_t i) {
  const std::string subject = "intermediate " + std::to_string(i);
  if (!node.has_intermediate(i)) throw Reject{"QUANT", "is absent, so its scale is unknown", subject};
  return ScaleOf(node.intermediate(i), subject, false);
}

// Returns the scale of the sums of a gate before its activation or normalization.
float GateScale(const LstmSpec& spec, const Node& node, Gate k) {
  return spec.layer_norm ? IntermediateScale(node, k) : kGateScale;
}

// The operand of a gate's peephole; 0: none.
uint32_t PeepholeOf(const LstmSpec& spec, Gate k) {
  if (!spec.peephole || k == kCellGate) return 0;
  return k == kOutGate ? kPeephole + 2 : kPeephole + k;
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
  const Tensor output = node.out(0);
  const Tensor state = node.in(kOutputState);
  const float output_scale = ScaleOf(output, "result 0", false);
  const float state_scale = ScaleOf(node, kOutputState, false);
  if (output_scale != state_scale || output.quant()->zero_points[0] != state.quant()->zero_points[0])
    RejectOperand("QUANT", "has a different scale than the output", kOutputState);
  CellBits(node);
}

// Products of scales in f32, as in TFLite, for bit-exact multipliers.
IntegerMatrix GateMatrix(const LstmSpec& spec, const Node& node, uint32_t first, uint32_t of) {
  const fbx_quant& x = *node.in(of).quant();
  std::vector<IntegerPart> parts;
  for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
    if (!spec.HasGate(k)) continue;
    const float scale = ScaleOf(node, first + k, true) * x.scales[0] / GateScale(spec, node, k);
    parts.push_back({first + k, spec.cells, ByteTile::kNoBias, FixedPoint(scale)});
    // With normalization, the bias is added after it.
    if (first == kInputWeights && !spec.layer_norm) parts.back().bias = kGateBias + k;
  }
  return {node, parts, x.zero_points[0]};
}

// The zero point of the hidden values was subtracted, so its contribution is added here.
IntegerMatrix ProjectionMatrix(const LstmSpec& spec, const Node& node, const fbx_quant& hidden) {
  if (!spec.projection) return {};
  const float scale =
      ScaleOf(node, kProjection, true) * hidden.scales[0] / node.in(kOutputState).quant()->scales[0];
  const uint32_t bias = node.has_in(kProjectionBias) ? kProjectionBias : ByteTile::kNoBias;
  return {node, {{kProjection, spec.outputs, bias, FixedPoint(scale)}}, -hidden.zero_points[0]};
}

class IntegerLstm final : public LstmEngine {
 public:
  IntegerLstm(const LstmSpec& spec, const Node& node);

  size_t ScratchBytes(const LstmSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * RowBytes(spec, ChunkSteps<int16_t>(spec, sums()));
  }
  void Run(const Node& node, const LstmSpec& spec, std::byte* scratch, uint32_t threads) const override;

 private:
  using Sequence = SequenceOf<int8_t>;
  // Memory of some rows.
  struct Rows {
    int16_t *z, *sums;  // [chunk][row], [row], of [gate][padded cells]
    int16_t* c;         // state
    int16_t* words;     // [row][padded cells or outputs]
    int8_t* hidden;     // [row][cells], before projection
  };

  size_t sums() const { return input_.layout().padded(); }
  size_t padded() const { return input_.part_outputs(); }
  size_t words() const { return std::max(padded(), projection_.layout().padded()); }
  size_t RowBytes(const LstmSpec& spec, size_t chunk_steps) const {
    return ScratchReader::Bytes((chunk_steps + 1) * sums() * sizeof(int16_t)) +
           ScratchReader::Bytes(words() * sizeof(int16_t)) +
           ScratchReader::Bytes(static_cast<size_t>(spec.cells)) + 4 * ScratchReader::kAlignment;
  }
  void RunRows(const Node& node, const LstmSpec& spec, const Sequence& s, int16_t* c, std::byte* scratch,
               size_t begin, size_t end, bool split) const;
  void FinishGate(const Node& node, const LstmSpec& spec, Gate k, int16_t* sums, const int16_t* c) const;
  void UpdateRow(const Node& node, const LstmSpec& spec, int16_t* sums, int16_t* c, int16_t* words,
                 int8_t* hidden) const;
  void ProjectHidden(const StepRowsOf<int8_t>& at, const Sequence& s, const Rows& of, size_t rows) const;
  // Gates follow one another; the first may be absent.
  int16_t* GateOf(const LstmSpec& spec, Gate k, int16_t* sums) const {
    return sums + (k - (spec.cifg ? 1 : 0)) * padded();
  }

  const ByteKernels& code_;
  int32_t cell_bits_;
  int32_t cell_clip_ = 0;  // 0: none
  FixedPoint hidden_by_;
  int32_t hidden_zero_ = 0;
  IntegerMatrix input_, recurrent_, projection_;
  int32_t output_zero_;  // of the projection
  int32_t least_ = -128;
  int32_t most_ = 127;
  FixedPoint peephole_by_[kGates];
  FixedNorm norm_[kGates];
};

IntegerLstm::IntegerLstm(const LstmSpec& spec, const Node& node)
    : code_(BestByteKernels()),
      cell_bits_(CellBits(node)),
      input_(GateMatrix(spec, node, kInputWeights, kInput)),
      recurrent_(GateMatrix(spec, node, kRecurrentWeights, kOutputState)) {
  const fbx_quant& output = *node.in(kOutputState).quant();
  const fbx_quant& hidden = spec.projection ? *node.intermediate(kHidden).quant() : output;
  hidden_by_ = FixedPoint(static_cast<float>(std::ldexp(1.0, -30) / hidden.scales[0]));
  hidden_zero_ = static_cast<int32_t>(hidden.zero_points[0]);
  projection_ = ProjectionMatrix(spec, node, hidden);
  output_zero_ = static_cast<int32_t>(output.zero_points[0]);
  const float clip = static_cast<float>(spec.projection_clip) / output.scales[0];
  if (clip >= 1) {
    most_ = static_cast<int32_t>(std::min(clip, 127.0F));
    least_ = -most_;
  }
  if (spec.cell_clip > 0)
    cell_clip_ = static_cast<int32_t>(std::min(std::ldexp(spec.cell_clip, cell_bits_), 32767.0));
  for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
    if (!spec.HasGate(k)) continue;
    if (const uint32_t p = PeepholeOf(spec, k); p != 0)
      peephole_by_[k] =
          FixedPoint(std::ldexp(ScaleOf(node, p, true), -cell_bits_) / GateScale(spec, node, k));
    if (spec.layer_norm) norm_[k] = FixedNorm(ScaleOf(node, kLayerNorm + k, true));
  }
}

void IntegerLstm::Run(const Node& node, const LstmSpec& spec, std::byte* scratch, uint32_t threads) const {
  for (const IntegerMatrix* matrix : {&input_, &recurrent_, &projection_}) {
    if (matrix->used()) matrix->PackOnce(node);
  }
  Sequence s(node, spec, threads, ChunkSteps<int16_t>(spec, sums()));
  s.width = static_cast<size_t>(spec.outputs);
  s.initial = s.final_state = StateMemory<int8_t>(node, kOutputState, 1);
  auto* const c = StateMemory<int16_t>(node, kCellState, 2);
  ForRowGroups(s, s.batch * s.steps * kGates * s.cells * (s.inputs + s.width),
               [&](size_t begin, size_t end, bool split) {
                 RunRows(node, spec, s, c + begin * s.cells, scratch + begin * RowBytes(spec, s.chunk_steps),
                         begin, end, split);
               });
}

// From the sums of products to the value of the gate.
void IntegerLstm::FinishGate(const Node& node, const LstmSpec& spec, Gate k, int16_t* sums,
                             const int16_t* c) const {
  const auto cells = static_cast<size_t>(spec.cells);
  int16_t* const values = GateOf(spec, k, sums);
  if (const uint32_t p = PeepholeOf(spec, k); p != 0)
    code_.add_peephole({cells, node.in(p).data<const int16_t>(), c, peephole_by_[k], values});
  if (spec.layer_norm)
    norm_[k].Apply(code_, node.in(kLayerNorm + k).data<const int16_t>(),
                   node.in(kGateBias + k).data<const int32_t>(), values, cells);
  if (k == kCellGate) code_.tanh(values, kGateBits, values, cells);
  else code_.sigmoid(values, kGateBits, cells);
}

void IntegerLstm::UpdateRow(const Node& node, const LstmSpec& spec, int16_t* sums, int16_t* c, int16_t* words,
                            int8_t* hidden) const {
  const auto cells = static_cast<size_t>(spec.cells);
  for (const Gate k : {kInGate, kForgetGate, kCellGate}) {
    if (spec.HasGate(k)) FinishGate(node, spec, k, sums, c);
  }
  code_.update_cells({cells, spec.cifg ? nullptr : GateOf(spec, kInGate, sums),
                      GateOf(spec, kForgetGate, sums), GateOf(spec, kCellGate, sums), cell_bits_, cell_clip_,
                      c});
  FinishGate(node, spec, kOutGate, sums, c);
  code_.tanh(c, cell_bits_, words, cells);
  code_.scale_products({cells, GateOf(spec, kOutGate, sums), words, hidden_by_, -hidden_zero_, hidden});
}

void IntegerLstm::ProjectHidden(const StepRowsOf<int8_t>& at, const Sequence& s, const Rows& of,
                                size_t rows) const {
  code_.multiply_words(projection_.TaskOf(of.hidden, rows, s.cells, of.words, words()), 0,
                       projection_.groups());
  for (size_t r = 0; r < rows; ++r)
    code_.narrow(of.words + r * words(), s.width, output_zero_, least_, most_,
                 at.after + r * at.after_stride);
}

void IntegerLstm::RunRows(const Node& node, const LstmSpec& spec, const Sequence& s, int16_t* c,
                          std::byte* scratch, size_t begin, size_t end, bool split) const {
  const size_t rows = end - begin;
  ScratchReader reader(scratch);
  const Rows of{reader.Take<int16_t>(s.chunk_steps * rows * sums()), reader.Take<int16_t>(rows * sums()), c,
                reader.Take<int16_t>(rows * words()), reader.Take<int8_t>(rows * s.cells)};
  const auto project = [&](const math::StridedRows<int8_t>& in) {
    MultiplySplit(input_, s, split, in, of.z);
  };
  const auto step = [&](size_t, size_t in_chunk, const StepRowsOf<int8_t>& at) {
    WordTask task = recurrent_.TaskOf(at.before, rows, at.before_stride, of.sums, sums());
    task.start = of.z + in_chunk * rows * sums();
    task.start_stride = sums();
    code_.multiply_words(task, 0, recurrent_.groups());
    for (size_t r = 0; r < rows; ++r)
      UpdateRow(node, spec, of.sums + r * sums(), of.c + r * s.cells, of.words + r * words(),
                spec.projection ? of.hidden + r * s.cells : at.after + r * at.after_stride);
    if (spec.projection) ProjectHidden(at, s, of, rows);
  };
  RunSequence(s, begin, end, project, step);
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
