// SPDX-License-Identifier: Apache-2.0
// The rows of A, the left operand of a GEMM, where they lie in memory.
#pragma once

#include <algorithm>
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

// Rows of A and of C, which may lie anywhere. A row of A is in `segments` parts of `segment` elements each,
// of which K is the sum: the lines of an input patch, or one. They begin at the same distances from the row's
// first element in every row.
template <class T>
struct Rows {
  const T* const* a;  // [m]
  T* const* c;        // [m]
  size_t m;
  const ptrdiff_t* offsets;  // [segments], in elements
  size_t segments, segment;
};

// The most rows of a task.
inline constexpr size_t kTaskRows = 64;

// Calls f(first row, rows) for rows [first, first + count) of a, with results in rows of c, in tasks.
template <class T, class F>
void ForRows(const StridedRows<T>& a, T* c, size_t ldc, size_t first, size_t count, const F& f) {
  constexpr ptrdiff_t kBeginning = 0;
  const T* from[kTaskRows];
  T* to[kTaskRows];
  for (size_t row = first; row < first + count; row += kTaskRows) {
    const size_t m = std::min(kTaskRows, first + count - row);
    for (size_t i = 0; i < m; ++i) {
      from[i] = a.at(row + i);
      to[i] = c + (row + i) * ldc;
    }
    f(row, Rows<T>{from, to, m, &kBeginning, 1, a.columns});
  }
}

}  // namespace fusebox::math
