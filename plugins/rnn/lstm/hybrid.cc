// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/hybrid.h"

#include <algorithm>
#include <string>

#include "plugins/rnn/cell/quantized_weights.h"
#include "plugins/rnn/lstm/cell.h"

namespace fusebox::rnn {
namespace {

bool IsStored(const Node& node, uint32_t operand) {
  return node.has_in(operand) && node.in(operand).dtype() == FBX_I8;
}

}  // namespace

struct HybridLstm::Products {
  const HybridLstm& lstm;
  const LstmSpec& spec;
  HybridVector x, h, hidden;
  const PanelCode& code = BestPanelCode();

  void Take(const float* input, const float* state) {
    x.Quantize(input, spec.inputs, lstm.asymmetric_);
    h.Quantize(state, spec.outputs, lstm.asymmetric_);
  }
  void Gate(rnn::Gate k, float* sums) const {
    lstm.matrices_[kInputWeights + k].Multiply(x, false, sums);
    lstm.matrices_[kRecurrentWeights + k].Multiply(h, true, sums);
  }
  void Project(const float* of, float* sums) {
    hidden.Quantize(of, spec.cells, lstm.asymmetric_);
    lstm.matrices_[kProjection].Multiply(hidden, false, sums);
  }
  void Squash(float* values) const {
    code.activate(spec.gate_activation, static_cast<size_t>(spec.cells), values, values);
  }
  void Activate(float* values) const {
    code.activate(spec.activation, static_cast<size_t>(spec.cells), values, values);
  }
};

void HybridLstm::Check(const LstmSpec& spec, const Node& node) {
  if (spec.diagonal)
    throw Reject{"OPERANDS", "is diagonal, which is done in f32 only",
                 "operand " + std::to_string(kRecurrentWeights + 1)};
  for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
    if (IsStored(node, i)) CheckStoredWeights(node, i);
  }
}

HybridLstm::HybridLstm(const LstmSpec& spec, const Node& node)
    : asymmetric_(node.attrs().b("asymmetric_quantize_inputs", false)) {
  Check(spec, node);
  for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
    if (!IsStored(node, i)) continue;
    const Tensor t = node.in(i);
    const auto* const values = t.data<const int8_t>();
    const float scale = t.quant()->scales[0];
    if (i >= kPeephole && i < kGateBias) {
      for (int64_t k = 0; k < t.count(); ++k)
        peepholes_[i - kPeephole].push_back(scale * static_cast<float>(values[k]));
      continue;
    }
    matrices_[i] = HybridMatrix(t, asymmetric_);
  }
}

size_t HybridLstm::ScratchBytes(const LstmSpec& spec) {
  return HybridBytes(spec.inputs) + HybridBytes(spec.outputs) + HybridBytes(spec.cells) +
         HybridBytes(static_cast<int64_t>(ReferenceScratch(spec) * sizeof(float)));
}

void HybridLstm::Run(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
                     std::byte* scratch) const {
  const auto take = [&](int64_t bytes) {
    std::byte* const at = scratch;
    scratch += HybridBytes(bytes);
    return at;
  };
  Products products{*this, spec, {}, {}, {}};
  products.x.values = reinterpret_cast<int8_t*>(take(spec.inputs));
  products.h.values = reinterpret_cast<int8_t*>(take(spec.outputs));
  products.hidden.values = reinterpret_cast<int8_t*>(take(spec.cells));
  const float* operands[24];
  std::copy_n(buffers.operands, 24, operands);
  for (uint32_t i = 0; i < 3; ++i) {
    if (!peepholes_[i].empty()) operands[kPeephole + i] = peepholes_[i].data();
  }
  auto* const gates = reinterpret_cast<float*>(scratch);
  const Cell<float, Products> cell{spec, operands, products, gates, gates + 4 * spec.cells};
  for (int64_t row = begin; row < end; ++row) {
    float* const h = buffers.output_state + row * spec.outputs;
    float* const c = buffers.cell_state + row * spec.cells;
    for (int64_t step = 0; step < spec.steps; ++step) {
      const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
      cell.Step(buffers.operands[kInput] + at * spec.inputs, h, c);
      std::copy_n(h, spec.outputs, buffers.output + at * spec.outputs);
    }
  }
}

}  // namespace fusebox::rnn
