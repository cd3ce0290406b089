// SPDX-License-Identifier: Apache-2.0
// Packs the weights of QuantizedBytes as bytes.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/quantized_bytes.h"

namespace fusebox::cpu {

namespace {

int32_t SumOf(std::span<const int8_t> row) {
  int32_t sum = 0;
  Vectorized([&]() FUSEBOX_INLINE {
    int32_t local = 0;
    for (const int8_t v : row) local += v;
    sum = local;
  });
  return sum;
}

// The values minus their zero points of a row span less than 256 numbers: they are moved into the range of a
// byte, by a multiple of the sum of the input.
int32_t MovedBytes(std::span<const int16_t> row, std::vector<int8_t>& bytes) {
  int32_t moved = 0;
  Vectorized([&]() FUSEBOX_INLINE {
    int16_t least = row[0];
    int16_t most = row[0];
    for (const int16_t v : row) {
      least = std::min(least, v);
      most = std::max(most, v);
    }
    const int32_t by = least >= -128 && most <= 127 ? 0 : least + 128;
    int8_t* const to = bytes.data();
    for (size_t k = 0; k < row.size(); ++k) to[k] = static_cast<int8_t>(row[k] - by);
    moved = by;
  });
  return moved;
}

// The lines of a window for each pixel, in fours. What lies between them stays as it is.
template <class T>
void SpreadLines(std::span<const T> window, const TapLines& lines, std::span<T> to) {
  auto at = to.begin();
  for (int64_t pixel = 0; pixel < lines.pixels; ++pixel) {
    for (auto line = window.begin(); line < window.end(); line += lines.taps, at += lines.padded())
      std::copy_n(line, lines.taps, at + pixel * lines.step);
  }
}

}  // namespace

// `rows`: 8-bit values without zero points, or values minus their zero points.
template <class T>
void QuantizedBytes::Pack(std::span<const T> rows, int64_t matrices, const ProductShape& shape,
                          std::byte* to) const {
  const int32_t offset = InputOffset();
  const ByteLayout layout = LayoutOf(shape, false);
  const auto depth = static_cast<size_t>(shape.k);
  std::vector<int8_t> moved(layout.k);
  std::vector<T> spread(shape.lines.taps > 0 ? layout.k : 0);
  for (int64_t matrix = 0; matrix < matrices; ++matrix, to += PackedMatrix::Bytes(layout)) {
    std::fill_n(to, PackedMatrix::Bytes(layout), std::byte{0});
    const PackedMatrix m(layout, to);
    for (size_t i = 0; i < layout.n && depth > 0; ++i) {
      auto row = rows.first(depth);
      rows = rows.subspan(depth);
      if (!spread.empty()) {
        SpreadLines<T>(row, shape.lines, spread);
        row = spread;
      }
      std::span<const int8_t> bytes = moved;
      if constexpr (std::is_same_v<T, int8_t>) bytes = row;
      else m.zeros[i] = MovedBytes(row, moved);
      if (m.zeros[i] != 0) *m.any_zeros = 1;
      math::PackByteRow(layout, i, bytes.data(), m.values);
      m.sums[i] = SumOf(bytes.first(layout.k / static_cast<size_t>(shape.lines.pixels)));
      m.start[i] = -offset * m.sums[i];
    }
  }
}

// 4-bit weights are packed plus 8, which is taken back by a multiple of the sum of the input.
void QuantizedBytes::PackInt4(const Node& n, std::byte* to) const {
  const ByteLayout layout = LayoutOf(KeptShape(), true);
  const auto* row = n.in(operands_.weights).data<const uint8_t>();
  const int32_t offset = InputOffset();
  const int64_t matrices = Matrices(n, weights_->channels, weights_->depth);
  for (int64_t matrix = 0; matrix < matrices; ++matrix, to += PackedMatrix::Bytes(layout)) {
    std::fill_n(to, PackedMatrix::Bytes(layout), std::byte{0});
    const PackedMatrix m(layout, to);
    *m.any_zeros = 1;
    for (size_t i = 0; i < layout.n; ++i, row += layout.k / 2) {
      m.zeros[i] = -8;
      m.sums[i] = math::PackInt4Row(layout, i, row, m.values);
      m.start[i] = -offset * m.sums[i];
    }
  }
}

void QuantizedBytes::PackOnce(const Node& n) const {
  weights_->packed.make_once([&] {
    const ByteLayout layout = LayoutOf(KeptShape(), true);
    const TapLines& lines = weights_->lines;
    const size_t each = PackedMatrix::Bytes(layout);
    PackedWeights::Recipe recipe{.what = "bytes"};
    recipe.numbers = {static_cast<int64_t>(layout.lanes),
                      static_cast<int64_t>(layout.unit),
                      layout.int4,
                      InputOffset(),
                      weights_->channels,
                      weights_->depth,
                      operands_.by_tap,
                      operands_.transposed,
                      lines.taps,
                      lines.step,
                      lines.pixels};
    recipe.sources = {n.in(operands_.weights)};
    recipe.size = static_cast<size_t>(Matrices(n, weights_->channels, weights_->depth)) * each;
    return PackedWeights(n, recipe, [&](void* to) { PackConstant(n, static_cast<std::byte*>(to)); });
  });
}

void QuantizedBytes::PackConstant(const Node& n, std::byte* to) const {
  const int64_t channels = weights_->channels;
  const int64_t depth = weights_->depth;
  const Tensor w = n.in(operands_.weights);
  const auto count = static_cast<size_t>(w.count());
  const fbx_quant& q = *w.quant();
  const bool as_stored = w.dtype() == FBX_I8 && std::all_of(q.zero_points, q.zero_points + q.count,
                                                            [](int64_t z) { return z == 0; });
  const int64_t matrices = Matrices(n, channels, depth);
  if (weights_->int4) {
    PackInt4(n, to);
  } else if (as_stored) {
    std::vector<int8_t> rows(Rearranges(operands_) ? count : 0);
    if (!rows.empty()) Rearrange(n, operands_, w.data<const int8_t>(), rows.data());
    Pack(std::span(rows.empty() ? w.data<const int8_t>() : rows.data(), count), matrices, KeptShape(), to);
  } else {
    std::vector<int16_t> rows(count);
    std::vector<int16_t> stored(Rearranges(operands_) ? count : 0);
    UnpackWeights(n, operands_, rows.data(), stored.data());
    Pack(std::span<const int16_t>(rows), matrices, KeptShape(), to);
  }
}

void QuantizedBytes::KeepPacked(const Node& n, int64_t channels, int64_t depth, TapLines lines) {
  if (!weights_ || channels <= 0 || depth <= 0) return;
  weights_->channels = channels;
  weights_->depth = depth;
  weights_->lines = lines;
  weights_->int4 = n.in(operands_.weights).dtype() == FBX_I4 && !Rearranges(operands_) && depth % 2 == 0;
  if (keeps_weights(n.host())) PackOnce(n);
}

template void QuantizedBytes::Pack(std::span<const int16_t>, int64_t, const ProductShape&, std::byte*) const;

}  // namespace fusebox::cpu
