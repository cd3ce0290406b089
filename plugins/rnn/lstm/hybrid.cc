// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/lstm/cell.h"
#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {
namespace {

class HybridLstm final : public RowEngine<LstmSpec, LstmBuffers<float>> {
 public:
  explicit HybridLstm(const Node& node) : asymmetric_(AsymmetricInputs(node)) {
    for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
      if (!IsInt8(node, i)) continue;
      if (i >= kPeephole && i < kGateBias) peepholes_[i - kPeephole] = Dequantized(node.in(i));
      else matrices_[i] = HybridMatrix(node.in(i), asymmetric_);
    }
  }

 private:
  struct Products {
    const HybridLstm& lstm;
    const LstmSpec& spec;
    HybridVector x, h, hidden;
    const PanelCode& code = BestPanelCode();

    void Load(const float* input, const float* state) {
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
    void ActivateGate(float* values) const {
      code.activate(spec.gate_activation, static_cast<size_t>(spec.cells), values, values);
    }
    void Activate(float* values) const {
      code.activate(spec.activation, static_cast<size_t>(spec.cells), values, values);
    }
  };

  size_t PartBytes(const LstmSpec& spec) const override {
    return HybridVector::Bytes(spec.inputs) + HybridVector::Bytes(spec.outputs) +
           HybridVector::Bytes(spec.cells) +
           ScratchReader::Bytes(5 * static_cast<size_t>(spec.cells) * sizeof(float));
  }

  void RunRows(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    ScratchReader reader(scratch);
    Products products{*this, spec, HybridVector(reader, spec.inputs), HybridVector(reader, spec.outputs),
                      HybridVector(reader, spec.cells)};
    const float* operands[24];
    std::copy_n(buffers.operands, 24, operands);
    for (uint32_t i = 0; i < 3; ++i) {
      if (!peepholes_[i].empty()) operands[kPeephole + i] = peepholes_[i].data();
    }
    RunCell<float>(spec, buffers, operands, products, reader.Take<float>(5 * static_cast<size_t>(spec.cells)),
                   begin, end);
  }

  bool asymmetric_;
  HybridMatrix matrices_[kProjection + 1];  // by operand
  std::vector<float> peepholes_[3];
};

}  // namespace

void CheckHybridLstm(const Node& node) {
  for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
    if (IsInt8(node, i)) CheckQuantizedWeights(node, i);
  }
}

std::unique_ptr<const LstmEngine> MakeHybridLstm(const LstmSpec&, const Node& node) {
  CheckHybridLstm(node);
  return std::make_unique<const HybridLstm>(node);
}

}  // namespace fusebox::rnn
