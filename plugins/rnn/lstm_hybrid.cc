// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm_hybrid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "plugins/rnn/lstm_cell.h"
#include "plugins/rnn/stored_weights.h"

namespace fusebox::rnn {
namespace {

int32_t Dot(const int8_t* a, const int8_t* b, int64_t n) {
  int32_t sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += int32_t{a[k]} * int32_t{b[k]};
  return sum;
}

bool IsStored(const Node& node, uint32_t operand) {
  return node.has_in(operand) && node.in(operand).dtype() == FBX_I8;
}

size_t Padded(int64_t bytes) { return static_cast<size_t>(bytes + 63) / 64 * 64; }

}  // namespace

// A vector of 8 bits: real = scale * (value - zero).
struct HybridLstm::Vector {
  int8_t* values = nullptr;
  float scale = 1;
  int32_t zero = 0;

  void Quantise(const float* x, int64_t n, bool asymmetric) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    scale = 1;
    zero = 0;
    if (low == high) {
      std::fill_n(values, n, int8_t{0});
      return;
    }
    asymmetric ? SetRange(low, high) : SetMagnitude(std::max(-low, high));
    const float inverse = 1 / scale;
    const int32_t least = asymmetric ? -128 : -127;
    for (int64_t i = 0; i < n; ++i) {
      const float stored = std::round(static_cast<float>(zero) + x[i] * inverse);
      values[i] = static_cast<int8_t>(stored > 127                         ? 127
                                      : stored > static_cast<float>(least) ? stored
                                                                           : least);
    }
  }

 private:
  void SetMagnitude(float most) { scale = most / 127; }
  // The zero point is that of the two ends whose rounding loses less.
  void SetRange(double low, double high) {
    const double step = (high - low) / 255;
    const double from_low = -128 - low / step, from_high = 127 - high / step;
    const double low_error = 128 + std::abs(low / step), high_error = 127 + std::abs(high / step);
    if (!std::isfinite(step)) return SetMagnitude(std::numeric_limits<float>::infinity());
    zero = static_cast<int32_t>(
        std::clamp(std::round(low_error < high_error ? from_low : from_high), -128.0, 127.0));
    scale = static_cast<float>(step);
  }
};

struct HybridLstm::Products {
  const HybridLstm& lstm;
  const LstmSpec& spec;
  Vector x, h, hidden;

  void Take(const float* input, const float* state) {
    x.Quantise(input, spec.inputs, lstm.asymmetric_);
    h.Quantise(state, spec.outputs, lstm.asymmetric_);
  }
  void Gate(rnn::Gate k, float* sums) const {
    Multiply(lstm.matrices_[kInputWeights + k], spec.cells, x, false, sums);
    Multiply(lstm.matrices_[kRecurrentWeights + k], spec.cells, h, true, sums);
  }
  void Project(const float* of, float* sums) {
    hidden.Quantise(of, spec.cells, lstm.asymmetric_);
    Multiply(lstm.matrices_[kProjection], spec.outputs, hidden, false, sums);
  }
};

void HybridLstm::Multiply(const Matrix& matrix, int64_t rows, const Vector& vector, bool add, float* sums) {
  const float scale = vector.scale * matrix.scale;
  for (int64_t i = 0; i < rows; ++i) {
    int32_t sum = Dot(matrix.values + i * matrix.columns, vector.values, matrix.columns);
    if (vector.zero != 0) sum -= vector.zero * matrix.row_sums[static_cast<size_t>(i)];
    const float product = static_cast<float>(sum) * scale;
    sums[i] = add ? sums[i] + product : product;
  }
}

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
    Matrix& matrix = matrices_[i];
    matrix = {values, t.dim(1), scale, {}};
    for (int64_t row = 0; asymmetric_ && row < t.dim(0); ++row)
      matrix.row_sums.push_back(std::accumulate(values + row * t.dim(1), values + (row + 1) * t.dim(1), 0));
  }
}

size_t HybridLstm::ScratchBytes(const LstmSpec& spec) {
  return Padded(spec.inputs) + Padded(spec.outputs) + Padded(spec.cells) +
         Padded(static_cast<int64_t>(ReferenceScratch(spec) * sizeof(float)));
}

void HybridLstm::Run(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
                     std::byte* scratch) const {
  const auto take = [&](int64_t bytes) {
    std::byte* const at = scratch;
    scratch += Padded(bytes);
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
