// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit rows with packed 8-bit weights: types and packing. byte_product-inl.h has the code.
//
// Outputs are in panels of `lanes`, four panels to a group, and columns in fours, as the dot product
// instructions read them: [group][four columns][panel][lane][column]; the last group has the remaining
// panels. Outputs and columns beyond the last are zeros. Sums are exact modulo 2^32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fusebox::common {

inline constexpr size_t kBytePanels = 4;  // of a group

struct ByteLayout {
  size_t lanes, outputs, columns;

  size_t panels() const { return (outputs + lanes - 1) / lanes; }
  size_t padded() const { return panels() * lanes; }  // outputs
  size_t groups() const { return (panels() + kBytePanels - 1) / kBytePanels; }
  size_t fours() const { return (columns + 3) / 4; }
  size_t bytes() const { return padded() * fours() * 4; }
};

// Packs one row of weights; the memory was filled with zeros.
inline void PackByteRow(const ByteLayout& layout, size_t output, const int8_t* row, int8_t* to) {
  const size_t panel = output / layout.lanes, group = panel / kBytePanels;
  const size_t width = std::min(kBytePanels, layout.panels() - group * kBytePanels) * layout.lanes * 4;
  int8_t* at = to + group * kBytePanels * layout.lanes * layout.fours() * 4 +
               (panel % kBytePanels * layout.lanes + output % layout.lanes) * 4;
  size_t k = 0;
  for (; k + 4 <= layout.columns; k += 4, at += width) std::memcpy(at, row + k, 4);
  if (k < layout.columns) std::memcpy(at, row + k, layout.columns - k);
}

inline int32_t SumOfBytes(const int8_t* row, size_t columns) {
  int32_t sum = 0;
  for (size_t k = 0; k < columns; ++k) sum += row[k];
  return sum;
}

// Adds of_output[output] * of_row[row] to every sum. Null: absent.
struct ByteTerm {
  const int32_t* of_output = nullptr;  // [padded outputs]
  const int32_t* of_row = nullptr;
};

// Sums of start + terms + weights * row. The bytes of rows are signed or unsigned, whichever the code wants
// (ByteSigns): if they are of the other kind, `flipped` inverts their upper bits, which moves them by 128.
struct ByteTask {
  const void* rows;
  size_t count;
  size_t stride;  // bytes
  bool flipped;
  ByteLayout layout;
  const int8_t* weights;
  const int32_t* start = nullptr;  // [padded outputs]; null: zeros
  ByteTerm terms[2] = {};
};

// How some code reads rows.
struct ByteSigns {
  bool unsigned_rows;

  // Whether rows of this kind must be flipped, and by how much this changes their values.
  bool Flips(bool rows_are_unsigned) const { return rows_are_unsigned != unsigned_rows; }
  int32_t Offset(bool rows_are_unsigned) const {
    return !Flips(rows_are_unsigned) ? 0 : unsigned_rows ? 128 : -128;
  }
};

}  // namespace fusebox::common
