// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit vectors with 8-bit weights whose results are 16-bit integers, as in the integer forms of
// TFLite's cells.
#pragma once

#include <vector>

#include "plugins/math/simd/fixed_point.h"
#include "plugins/rnn/cell/byte_matrix.h"

namespace fusebox::rnn {

// Rows of a matrix beside a bias, with one factor.
struct IntegerPart {
  uint32_t operand;
  int64_t rows;
  uint32_t bias = ByteTile::kNoBias;
  math::FixedPoint by = {};
  int64_t first = 0;  // row of the operand, and of the bias
};

// result = by * (matrix * (x - zero) + bias), modulo 2^32 before the factor, saturated to 16 bits after it.
// Layout of results: ByteMatrix.
class IntegerMatrix : public ByteMatrix {
 public:
  IntegerMatrix() = default;
  // `zero` is the zero point of x.
  IntegerMatrix(const Node& node, const std::vector<IntegerPart>& parts, int64_t zero);

  // Returns the product with `count` vectors, `stride` apart.
  WordTask TaskOf(const int8_t* rows, size_t count, size_t stride, int16_t* out, size_t out_stride) const;

 private:
  FixedScales scales_;
};

}  // namespace fusebox::rnn
