// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/lstm/cell.h"
#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {
namespace {

// Every variant, a row at a time.
class HybridLstm final : public RowEngine<LstmSpec, LstmBuffers<float>> {
 public:
  explicit HybridLstm(const Node& node) : asymmetric_(AsymmetricInputs(node)) {
    for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
      if (!IsInt8(node, i)) continue;
      if (i >= kPeephole && i < kGateBias) peepholes_[i - kPeephole] = Dequantized(node.in(i));
      else matrices_[i] = HybridMatrix(node, i);
    }
  }

 private:
  struct Products {
    const HybridLstm& lstm;
    const LstmSpec& spec;
    HybridRows x, h, hidden;
    const CellCode& code = BestCellCode();

    void Load(const float* input, const float* state) {
      Quantize(input, spec.inputs, x);
      Quantize(state, spec.outputs, h);
    }
    void Gate(rnn::Gate k, float* sums) const {
      lstm.matrices_[kInputWeights + k].Multiply(x, nullptr, 0, sums, 0);
      lstm.matrices_[kRecurrentWeights + k].Multiply(h, sums, 0, sums, 0);
    }
    void Project(const float* of, float* sums) {
      Quantize(of, spec.cells, hidden);
      lstm.matrices_[kProjection].Multiply(hidden, nullptr, 0, sums, 0);
    }
    void Quantize(const float* from, int64_t n, HybridRows& to) const {
      to.Quantize(OneRow(from, n), lstm.asymmetric_);
    }
    void ActivateGate(float* values) const {
      code.activate(spec.gate_activation, static_cast<size_t>(spec.cells), values, values);
    }
    void Activate(float* values) const {
      code.activate(spec.activation, static_cast<size_t>(spec.cells), values, values);
    }
  };

  void PackOnce(const Node& node) const override {
    for (uint32_t i = kInputWeights; i <= kProjection; ++i) {
      if (matrices_[i].used()) matrices_[i].PackOnce(node);
    }
  }
  static size_t RowBytes(int64_t columns) { return HybridRows::Bytes(1, static_cast<size_t>(columns)); }
  size_t PartBytes(const LstmSpec& spec) const override {
    return RowBytes(spec.inputs) + RowBytes(spec.outputs) + RowBytes(spec.cells) +
           ScratchReader::Bytes(5 * static_cast<size_t>(spec.cells) * sizeof(float));
  }

  void RunRows(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    ScratchReader reader(scratch);
    const auto take = [&](int64_t columns) { return HybridRows(reader, 1, static_cast<size_t>(columns)); };
    HybridRows x = take(spec.inputs);
    HybridRows h = take(spec.outputs);
    HybridRows hidden = take(spec.cells);
    Products products{*this, spec, x, h, hidden};
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

std::unique_ptr<const LstmEngine> MakeHybridLstm(const LstmSpec& spec, const Node& node) {
  CheckHybridLstm(node);
  if (spec.plain() && spec.constant_weights) return MakePackedHybridLstm(spec, node);
  return std::make_unique<const HybridLstm>(node);
}

}  // namespace fusebox::rnn
