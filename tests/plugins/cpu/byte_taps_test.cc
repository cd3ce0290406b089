// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of bytes, in every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cpu/quantized/byte_code.h"

namespace fusebox::cpu {
namespace {

using math::FixedPoint;

// A row of pixels, with numbers for everything that it reads.
struct Row {
  size_t taps, lines, stride, dilation, channels, pixels;

  size_t fours() const { return (taps + 3) / 4; }
  size_t step() const { return stride % dilation == 0 ? stride / dilation : 0; }
  size_t together() const { return step() == 0 ? 1 : std::min<size_t>((4 * fours() - taps) / step() + 1, 4); }
  size_t reach() const { return ((pixels - 1) * stride + (taps - 1) * dilation + 1) * channels; }
  std::string text() const {
    return std::to_string(lines) + "x" + std::to_string(taps) + " taps, stride " + std::to_string(stride) +
           ", dilation " + std::to_string(dilation) + ", " + std::to_string(channels) + " channels, " +
           std::to_string(pixels) + " pixels";
  }
};

class Convolution {
 public:
  Convolution(const ByteKernels& code, const Row& row, bool moved)
      : code_(code),
        row_(row),
        layout_{code.lanes, row.channels, row.together() * row.lines * row.fours() * 4},
        moved_(moved),
        weights_(row.channels * row.lines * row.taps),
        packed_(layout_.bytes()),
        sums_(layout_.padded()),
        zeros_(layout_.padded()) {
    for (size_t i = 0; i < weights_.size(); ++i)
      weights_[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
    for (size_t line = 0; line < row.lines; ++line) {
      lines_.emplace_back(row.reach());
      for (size_t i = 0; i < row.reach(); ++i)
        lines_[line][i] = static_cast<uint8_t>(i % 5 == 0 ? 128 : i * 91 + line * 31 + 3);
      pointers_.push_back(lines_.back().data());
    }
    for (size_t c = 0; c < row.channels; ++c) {
      if (moved) zeros_[c] = static_cast<int32_t>(c % 3) - 1;
      Pack(c);
    }
  }

  // Of a channel of a pixel.
  int32_t Expected(size_t pixel, size_t c, bool is_unsigned, int32_t zero) const {
    int32_t sum = 0;
    for (size_t line = 0; line < row_.lines; ++line) {
      for (size_t k = 0; k < row_.taps; ++k) {
        const uint8_t byte = lines_[line][(pixel * row_.stride + k * row_.dilation) * row_.channels + c];
        sum += (Weight(c, line, k) + zeros_[c]) * ((is_unsigned ? byte : static_cast<int8_t>(byte)) - zero);
      }
    }
    return sum;
  }

  void Run(bool is_unsigned, int32_t zero, const ByteResults* results, void* out) const {
    code_.depthwise({.lines = pointers_.data(),
                     .line_count = row_.lines,
                     .taps = row_.taps,
                     .together = row_.together(),
                     .step = row_.step(),
                     .pixel_step = row_.stride * row_.channels,
                     .tap_step = row_.dilation * row_.channels,
                     .pixels = row_.pixels,
                     .flipped = code_.signs.Flips(is_unsigned),
                     .layout = layout_,
                     .weights = packed_.data(),
                     .sums = sums_.data(),
                     .zeros = moved_ ? zeros_.data() : nullptr,
                     .offset = zero + code_.signs.Offset(is_unsigned),
                     .results = results,
                     .out = out});
  }

 private:
  int8_t Weight(size_t c, size_t line, size_t tap) const {
    return weights_[(c * row_.lines + line) * row_.taps + tap];
  }
  // Where a pixel has no tap, the weight is zero, minus what zeros add.
  void Pack(size_t c) {
    std::vector<int8_t> spread(layout_.k, static_cast<int8_t>(-zeros_[c]));
    const size_t each = row_.lines * row_.fours() * 4;
    for (size_t pixel = 0; pixel < row_.together(); ++pixel) {
      for (size_t line = 0; line < row_.lines; ++line) {
        for (size_t k = 0; k < row_.taps; ++k)
          spread[pixel * each + line * row_.fours() * 4 + pixel * row_.step() + k] = Weight(c, line, k);
      }
    }
    math::PackByteRow(layout_, c, spread.data(), packed_.data());
    sums_[c] = math::SumOfBytes(spread.data(), each);
  }

  const ByteKernels& code_;
  const Row row_;
  const ByteLayout layout_;
  const bool moved_;
  std::vector<int8_t> weights_, packed_;
  std::vector<int32_t> sums_, zeros_;
  std::vector<std::vector<uint8_t>> lines_;
  std::vector<const uint8_t*> pointers_;
};

template <class F>
void ForRows(const F& f) {
  for (size_t taps = 1; taps < 12; ++taps) {
    for (const size_t stride : {1, 2, 3}) {
      for (const size_t dilation : {1, 2}) {
        const size_t channels = (taps * 11 + stride * 7 + dilation) % 41 + 1;
        f(Row{taps, taps % 4 + 1, stride, dilation, channels, (taps + stride) % 7 + 1});
        f(Row{taps, 1, stride, dilation, channels % 2 == 0 ? size_t{16} : size_t{64}, 9});
      }
    }
  }
}

TEST(ByteTaps, SumAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    ForRows([&](const Row& row) {
      for (const bool moved : {false, true}) {
        const Convolution convolution(*code, row, moved);
        for (const bool is_unsigned : {false, true}) {
          const int32_t zero = is_unsigned ? 99 : -17;
          std::vector<int32_t> out(row.pixels * row.channels + 1, 77);
          convolution.Run(is_unsigned, zero, nullptr, out.data());
          for (size_t i = 0; i < row.pixels * row.channels; ++i)
            ASSERT_EQ(out[i], convolution.Expected(i / row.channels, i % row.channels, is_unsigned, zero))
                << row.text() << ", result " << i;
          ASSERT_EQ(out.back(), 77);
        }
      }
    });
  }
}

// With scales that shift to the left, not at all, and to the right.
TEST(ByteTaps, ScaleAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (const double scale : {2.5, 1.0, 0.999, 0.5, 0.0123, 1e-4, 1e-9}) {
      for (const bool per_channel : {false, true}) {
        ForRows([&](const Row& row) {
          std::vector<FixedPoint> by;
          for (size_t c = 0; c < (per_channel ? row.channels : 1); ++c)
            by.emplace_back(scale / static_cast<double>(c % 3 + 1));
          const ByteScales scales(by, {-3, -120, 100, false});
          std::vector<int32_t> bias(row.channels);
          for (size_t c = 0; c < bias.size(); ++c)
            bias[c] = c % 5 == 4 ? INT32_MAX - 10'000'000 : static_cast<int32_t>(c * 9091) - 50'000;
          const ByteResults results{&scales, bias.data()};
          const Convolution convolution(*code, row, false);
          std::vector<int8_t> out(row.pixels * row.channels + 1, 77);
          convolution.Run(false, 5, &results, out.data());
          for (size_t i = 0; i < row.pixels * row.channels; ++i) {
            const size_t c = i % row.channels;
            const int32_t sum = convolution.Expected(i / row.channels, c, false, 5) + bias[c];
            const int64_t scaled = by[per_channel ? c : 0].Times(sum);
            ASSERT_EQ(out[i], std::clamp<int64_t>(scaled - 3, -120, 100)) << row.text() << ", sum " << sum;
          }
          ASSERT_EQ(out.back(), 77);
        });
      }
    }
  }
}

}  // namespace
}  // namespace fusebox::cpu
