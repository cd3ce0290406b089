// SPDX-License-Identifier: Apache-2.0
// The cell with weights of 8 bits: each vector is quantised before it meets a matrix, products are summed as integers, all else is f32.
//
// A vector's scale is its own: [-127, 127] spans its largest magnitude, or, with asymmetric_quantize_inputs, [-128, 127] its range
// widened to hold 0.
#pragma once

#include <cstdint>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/lstm_reference.h"
#include "plugins/rnn/lstm_spec.h"

namespace fusebox::rnn {

class HybridLstm {
 public:
  // Throws Reject for weights that are computed, or that have no single scale.
  static void Check(const LstmSpec& spec, const Node& node);
  HybridLstm(const LstmSpec& spec, const Node& node);

  // Of one call of Run.
  static size_t ScratchBytes(const LstmSpec& spec);
  // As RunReference; of the operands 0, 12-15, 17 and 20-23 are read.
  void Run(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  struct Matrix {
    const int8_t* values = nullptr;
    int64_t columns = 0;
    float scale = 0;
    std::vector<int32_t> row_sums;  // where vectors have zero points
  };
  struct Vector;
  struct Products;
  static void Multiply(const Matrix& matrix, int64_t rows, const Vector& vector, bool add, float* sums);

  bool asymmetric_;
  Matrix matrices_[kProjection + 1];  // by operand
  std::vector<float> peepholes_[3];   // in f32
};

}  // namespace fusebox::rnn
