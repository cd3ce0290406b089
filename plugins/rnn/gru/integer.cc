// SPDX-License-Identifier: Apache-2.0
// The GRU in integers. Products are of 8 bits. Gates and state have 16 bits, so that a gate near one moves
// the state by less than a step of the output.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plugins/rnn/cell/integer_matrix.h"
#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/gru/engines.h"

namespace fusebox::rnn {
namespace {

using math::FixedPoint;

// Sums before activation are in [-16, 16): the LSTM's 12 bits end at 8, where two large sums of opposite
// signs are already cut off.
constexpr int32_t kSumBits = 11;
constexpr int32_t kGateBits = 15;
constexpr int32_t kFewestStateBits = 9;
constexpr int64_t kUpdate = 0;
constexpr int64_t kReset = 1;
constexpr int64_t kCandidate = 2;

// Fractional bits of the state. A state of tanh may use the last step beyond one.
int32_t StateBits(const fbx_quant& h) {
  const auto zero = static_cast<double>(h.zero_points[0]);
  const double largest = (std::max(128 + zero, 127 - zero) - 1) * static_cast<double>(h.scales[0]);
  int32_t bits = 15;
  while (bits >= kFewestStateBits && largest > std::ldexp(1.0, 15 - bits)) --bits;
  return bits;
}

// Returns the product of some gates' rows of `weights` and vectors like operand `of`.
IntegerMatrix Gates(const GruSpec& spec, const Node& node, uint32_t weights, uint32_t of, int64_t begin,
                    int64_t end) {
  const fbx_quant& x = *node.in(of).quant();
  const uint32_t bias = weights == kGruWeights ? kGruBias : kGruRecurrentBias;
  const double scale = static_cast<double>(ScaleOf(node, weights, true)) * static_cast<double>(x.scales[0]);
  std::vector<IntegerPart> parts;
  for (int64_t gate = begin; gate < end; ++gate)
    parts.push_back({.operand = weights,
                     .rows = spec.cells,
                     .bias = node.has_in(bias) ? bias : ByteTile::kNoBias,
                     .by = FixedPoint(std::ldexp(scale, kSumBits)),
                     .first = gate * spec.cells});
  return {node, parts, x.zero_points[0]};
}

class IntegerGru final : public GruEngine {
 public:
  IntegerGru(const GruSpec& spec, const Node& node)
      : code_(BestByteKernels()),
        state_scale_(node.in(kGruState).quant()->scales[0]),
        zero_(static_cast<int32_t>(node.in(kGruState).quant()->zero_points[0])),
        state_bits_(StateBits(*node.in(kGruState).quant())),
        output_by_(std::ldexp(1 / state_scale_, -state_bits_)),
        reset_by_(std::ldexp(1 / state_scale_, -state_bits_ - kGateBits)),
        input_(Gates(spec, node, kGruWeights, kGruInput, kUpdate, kGruGates)),
        gates_(Gates(spec, node, kGruRecurrent, kGruState, kUpdate, kCandidate)),
        candidate_(Gates(spec, node, kGruRecurrent, kGruState, kCandidate, kGruGates)) {}

  size_t ScratchBytes(const GruSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * RowBytes(spec, ChunkSteps<int16_t>(spec, width()));
  }

  void Run(const Node& node, const GruSpec& spec, std::byte* scratch, uint32_t threads) const override {
    for (const IntegerMatrix* matrix : {&input_, &gates_, &candidate_}) matrix->PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps<int16_t>(spec, width()));
    s.initial = node.in(kGruState).data<const int8_t>();
    s.final_state = node.out(1).data<int8_t>();
    ForRowGroups(s, s.batch * s.steps * kGruGates * s.cells * (s.inputs + s.cells),
                 [&](size_t begin, size_t end, bool split) {
                   RunRows(spec, s, scratch + begin * RowBytes(spec, s.chunk_steps), begin, end, split);
                 });
  }

 private:
  using Sequence = SequenceOf<int8_t>;
  // Memory of some rows.
  struct Rows {
    size_t count;
    int16_t* x;       // [chunk][row][gate][padded]: sums of the input
    int16_t* gates;   // [row][update and reset][padded]
    int16_t* sums;    // [row][padded]: sums of the candidate
    int16_t* h;       // [row][padded]
    int8_t* reset_h;  // [row][cells]
  };

  size_t padded() const { return candidate_.layout().padded(); }
  size_t width() const { return kGruGates * padded(); }
  size_t RowBytes(const GruSpec& spec, size_t chunk_steps) const {
    return ScratchReader::Bytes((kGruGates * chunk_steps + 4) * padded() * sizeof(int16_t)) +
           ScratchReader::Bytes(static_cast<size_t>(spec.cells));
  }

  void RunRows(const GruSpec& spec, const Sequence& s, std::byte* scratch, size_t begin, size_t end,
               bool split) const {
    const size_t rows = end - begin;
    ScratchReader reader(scratch);
    auto* const words = reader.Take<int16_t>(rows * (kGruGates * s.chunk_steps + 4) * padded());
    int16_t* const gates = words + rows * s.chunk_steps * width();
    int16_t* const sums = gates + rows * 2 * padded();
    const Rows of{rows, words, gates, sums, sums + rows * padded(), reader.Take<int8_t>(rows * s.cells)};
    for (size_t r = 0; r < rows; ++r)
      LoadState(s.initial + (begin + r) * s.cells, s.cells, of.h + r * padded());
    const auto project = [&](const math::StridedRows<int8_t>& in) {
      MultiplySplit(input_, s, split, in, of.x);
    };
    const auto step = [&](size_t, size_t in_chunk, const StepRowsOf<int8_t>& at) {
      int16_t* const x = of.x + in_chunk * rows * width();
      StepGates(of, x, at);
      if (spec.reset_after) ResetSums(s, of, x, at);
      else ResetState(s, of, x);
      Finish(s, of, spec.reset_after ? x + kCandidate * padded() : of.sums,
             spec.reset_after ? width() : padded(), at);
    };
    RunSequence(s, begin, end, project, step);
  }

  void LoadState(const int8_t* from, size_t cells, int16_t* h) const {
    const double by = std::ldexp(state_scale_, state_bits_);
    for (size_t i = 0; i < cells; ++i) h[i] = math::Saturate<int16_t>(std::llround((from[i] - zero_) * by));
  }

  void StepGates(const Rows& of, const int16_t* x, const StepRowsOf<int8_t>& at) const {
    WordTask task = gates_.TaskOf(at.before, of.count, at.before_stride, of.gates, 2 * padded());
    task.start = x;
    task.start_stride = width();
    code_.multiply_words(task, 0, gates_.groups());
    code_.sigmoid(of.gates, kSumBits, of.count * 2 * padded());
  }

  // x + r * (Rh h + ch), in place of x.
  void ResetSums(const Sequence& s, const Rows& of, int16_t* x, const StepRowsOf<int8_t>& at) const {
    const FixedPoint by(std::ldexp(1.0, -kGateBits));
    code_.multiply_words(candidate_.TaskOf(at.before, of.count, at.before_stride, of.sums, padded()), 0,
                         candidate_.groups());
    for (size_t r = 0; r < of.count; ++r)
      code_.add_peephole({s.cells, of.gates + (2 * r + kReset) * padded(), of.sums + r * padded(), by,
                          x + r * width() + kCandidate * padded()});
  }

  // x + Rh (r * h), in `sums`.
  void ResetState(const Sequence& s, const Rows& of, const int16_t* x) const {
    for (size_t r = 0; r < of.count; ++r)
      code_.scale_products({s.cells, of.gates + (2 * r + kReset) * padded(), of.h + r * padded(), reset_by_,
                            zero_, of.reset_h + r * s.cells});
    WordTask task = candidate_.TaskOf(of.reset_h, of.count, s.cells, of.sums, padded());
    task.start = x + kCandidate * padded();
    task.start_stride = width();
    code_.multiply_words(task, 0, candidate_.groups());
  }

  void Finish(const Sequence& s, const Rows& of, int16_t* candidates, size_t stride,
              const StepRowsOf<int8_t>& at) const {
    for (size_t r = 0; r < of.count; ++r) {
      int16_t* const candidate = candidates + r * stride;
      int16_t* const h = of.h + r * padded();
      code_.tanh(candidate, kSumBits, candidate, s.cells);
      code_.blend({s.cells, of.gates + (2 * r + kUpdate) * padded(), candidate, state_bits_, h});
      code_.scale_products({s.cells, h, nullptr, output_by_, zero_, at.after + r * at.after_stride});
    }
  }

  const ByteKernels& code_;
  double state_scale_;
  int32_t zero_, state_bits_;  // zero point of states and output
  FixedPoint output_by_, reset_by_;
  IntegerMatrix input_, gates_, candidate_;
};

void CheckStates(const Node& node) {
  const float scale = ScaleOf(node, kGruState, false);
  const int64_t zero = node.in(kGruState).quant()->zero_points[0];
  for (uint32_t i = 0; i < 2; ++i) {
    const std::string subject = "result " + std::to_string(i);
    if (ScaleOf(node.out(i), subject, false) != scale || node.out(i).quant()->zero_points[0] != zero)
      throw Reject{"QUANT", "has a different scale than the initial state", subject};
  }
  if (StateBits(*node.in(kGruState).quant()) < kFewestStateBits)
    RejectOperand("QUANT", "has values beyond 64", kGruState);
}

}  // namespace

void CheckIntegerGru(const GruSpec& spec, const Node& node) {
  if (spec.activation != Activation::kTanh) throw Reject{"ATTR", "is not tanh beside i8", "attr activation"};
  if (spec.gate_activation != Activation::kSigmoid)
    throw Reject{"ATTR", "is not sigmoid beside i8", "attr recurrent_activation"};
  for (const uint32_t weights : {kGruWeights, kGruRecurrent}) CheckQuantizedWeights(node, weights);
  for (const uint32_t bias : {kGruBias, kGruRecurrentBias}) {
    if (node.has_in(bias)) RequireConstant(node, bias);
  }
  // States near a gate of one would not change at all.
  if (spec.steps == 1 && !HasConstant(node, kGruState))
    RejectOperand("SHAPE", "has one step, and the state is rounded to 8 bits between calls", kGruInput);
  ScaleOf(node, kGruInput, false);
  CheckStates(node);
}

std::unique_ptr<const GruEngine> MakeIntegerGru(const GruSpec& spec, const Node& node) {
  return std::make_unique<const IntegerGru>(spec, node);
}

}  // namespace fusebox::rnn
