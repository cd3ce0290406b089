// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit rows with packed 8-bit weights: types and packing. bytes-inl.h has the code.
//
// Outputs are in panels of `lanes`, four panels to a group, and columns in units of four, as the dot product
// instructions read them: [group][unit][panel][lane][column]; the last group has the remaining panels. The
// matrix instructions of arm64 read units of eight. Outputs and columns beyond the last are zeros. Sums are
// exact modulo 2^32.
//
// 4-bit weights are numbers from 0 to 15. The lower halves of the bytes hold four columns, the upper halves
// the next four, and all groups have four panels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fusebox::math {

inline constexpr size_t kBytePanels = 4;  // of a group

struct ByteLayout {
  size_t lanes, n, k;  // n outputs, sums of k products each
  bool int4 = false;   // 4-bit weights
  size_t unit = 4;     // 8: for code of such a unit; not of 4-bit weights

  size_t panels() const {
    const size_t used = (n + lanes - 1) / lanes;
    return int4 ? (used + kBytePanels - 1) / kBytePanels * kBytePanels : used;
  }
  size_t padded() const { return panels() * lanes; }  // outputs
  size_t groups() const { return (panels() + kBytePanels - 1) / kBytePanels; }
  size_t fours() const { return (k + 3) / 4; }
  size_t output_bytes() const {  // of one output
    return int4 ? (fours() + 1) / 2 * 4 : (k + unit - 1) / unit * unit;
  }
  size_t bytes() const { return padded() * output_bytes(); }
  size_t group_bytes() const { return kBytePanels * lanes * output_bytes(); }  // of all but the last
};

// Packs one row of weights; the memory was filled with zeros.
inline void PackByteRow(const ByteLayout& layout, size_t output, const int8_t* row, int8_t* to) {
  const size_t panel = output / layout.lanes;
  const size_t group = panel / kBytePanels;
  const size_t panels = std::min(kBytePanels, layout.panels() - group * kBytePanels);
  const auto pack = [&]<size_t kUnit>() {
    int8_t* at = to + group * layout.group_bytes() +
                 (panel % kBytePanels * layout.lanes + output % layout.lanes) * kUnit;
    size_t k = 0;
    for (; k + kUnit <= layout.k; k += kUnit, at += panels * layout.lanes * kUnit)
      std::memcpy(at, row + k, kUnit);
    if (k < layout.k) std::memcpy(at, row + k, layout.k - k);
  };
  if (layout.unit == 4) pack.template operator()<4>();
  else pack.template operator()<8>();
}

// The same for 4-bit weights: two to a byte, the lower half first, from -8 to 7, from an even column on. They
// are stored plus 8. Returns the sum of what is stored.
inline int32_t PackInt4Row(const ByteLayout& layout, size_t output, const uint8_t* row, int8_t* to) {
  const size_t width = kBytePanels * layout.lanes * 4;
  const size_t panel = output / layout.lanes;
  int8_t* at = to + panel / kBytePanels * layout.group_bytes() +
               (panel % kBytePanels * layout.lanes + output % layout.lanes) * 4;
  const auto spread = [](uint32_t halves) {  // four 4-bit numbers, one to a byte
    halves = (halves | halves << 8) & 0x00FF00FF;
    return (halves | halves << 4) & 0x0F0F0F0F;
  };
  int32_t sum = 0;
  for (size_t k = 0; k < layout.k; k += 8, at += width) {
    const size_t count = std::min<size_t>(8, layout.k - k);
    uint32_t eight = 0;
    std::memcpy(&eight, row + k / 2, (count + 1) / 2);
    eight ^= 0x88888888;
    if (count < 8) eight &= (uint32_t{1} << 4 * count) - 1;
    const uint32_t first = spread(eight & 0xFFFF);
    const uint32_t second = spread(eight >> 16);
    const uint32_t packed = first | second << 4;
    std::memcpy(at, &packed, 4);
    sum += static_cast<int32_t>((first + second) * 0x01010101 >> 24);  // of four bytes up to 30
  }
  return sum;
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
  bool flipped = false;
  ByteLayout layout;
  const int8_t* weights;
  const int32_t* start = nullptr;  // [padded outputs]; null: zeros
  ByteTerm terms[2] = {};
};

// How some code reads rows.
struct ByteSigns {
  bool unsigned_rows;

  // Returns whether rows of this kind must be flipped; Offset, by how much this changes their values.
  bool Flips(bool rows_are_unsigned) const { return rows_are_unsigned != unsigned_rows; }
  int32_t Offset(bool rows_are_unsigned) const {
    return !Flips(rows_are_unsigned) ? 0 : unsigned_rows ? 128 : -128;
  }
};

}  // namespace fusebox::math
