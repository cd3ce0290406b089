// SPDX-License-Identifier: Apache-2.0
// The rows of A, the left operand of a GEMM, where they lie in memory.
#pragma once

#include <cstddef>

namespace fusebox::math {

// Vectors of some steps of some rows, step by step. Strides are in elements.
template <class T>
struct StridedRows {
  const T* x;
  size_t steps, rows;
  size_t step_stride, row_stride;
  size_t columns;  // length of a vector: K

  size_t count() const { return steps * rows; }  // M
  const T* at(size_t i) const {
    return steps == 1 ? x + i * row_stride : x + i / rows * step_stride + i % rows * row_stride;
  }
};

// The rows of a matrix.
template <class T>
StridedRows<T> MatrixRows(const T* x, size_t rows, size_t stride, size_t columns) {
  return {x, 1, rows, 0, stride, columns};
}

}  // namespace fusebox::math
