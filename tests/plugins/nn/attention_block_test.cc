// SPDX-License-Identifier: Apache-2.0
// The code of attention for each SIMD target, beside the definition in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "plugins/nn/attention/block.h"

namespace fusebox::nn_test {
namespace {

std::vector<float> Uniform(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> out(count);
  for (float& value : out) value = values(random);
  return out;
}

// K or V of random values, and how to read them in f64.
struct Stored {
  std::vector<float> floats;
  std::vector<uint16_t> halves;
  std::vector<int8_t> bytes;
  nn::Cache cache;

  Stored(nn::Cache::Type type, size_t keys, size_t depth, uint32_t seed, bool transposed = false)
      : floats(Uniform(keys * depth, seed)), halves(floats.size()), bytes(floats.size()) {
    for (size_t i = 0; i < floats.size(); ++i) {
      bytes[i] = static_cast<int8_t>(floats[i] * 60);
      // Exponents of 2^-3 to 2^0.
      halves[i] = static_cast<uint16_t>((i * 977 + seed) % 0x1000 + 0x3000 + (i % 3 == 0 ? 0x8000 : 0));
    }
    using enum nn::Cache::Type;
    const void* const data = type == kF32   ? static_cast<const void*>(floats.data())
                             : type == kF16 ? static_cast<const void*>(halves.data())
                                            : bytes.data();
    cache = {data, transposed ? keys : depth, depth, type, 0.03f, -4, transposed};
  }
};

double HalfValue(uint16_t half) {
  const double mantissa = 1 + (half & 0x3ff) / 1024.0;
  return (half & 0x8000 ? -mantissa : mantissa) * std::ldexp(1, (half >> 10 & 31) - 15);
}

double At(const nn::Cache& c, size_t key, size_t i) {
  const size_t at = c.transposed ? i * c.stride + key : key * c.stride + i;
  switch (c.type) {
    case nn::Cache::Type::kF32: return static_cast<double>(static_cast<const float*>(c.data)[at]);
    case nn::Cache::Type::kF16: return HalfValue(static_cast<const uint16_t*>(c.data)[at]);
    default: return static_cast<double>(c.scale) * (static_cast<const int8_t*>(c.data)[at] - c.zero);
  }
}

// softmax(scale * q k^T) v in f64, of one head group.
std::vector<double> Expected(const nn::AttentionBlock& b) {
  std::vector<double> out;
  for (size_t row = 0; row < b.rows; ++row) {
    const size_t position = (b.first + row) / b.group, head = (b.first + row) % b.group;
    const size_t keys = b.causal ? std::min(b.keys, position + 1) : b.keys;
    std::vector<double> scores(keys);
    for (size_t key = 0; key < keys; ++key) {
      for (size_t i = 0; i < b.k.depth; ++i)
        scores[key] +=
            static_cast<double>(b.q[position * b.q_stride + head * b.q_head + i]) * At(b.k, key, i);
      scores[key] *= static_cast<double>(b.scale);
      if (b.cap > 0)
        scores[key] = static_cast<double>(b.cap) * std::tanh(scores[key] / static_cast<double>(b.cap));
      if (!b.mask) continue;
      const float mask = b.mask[position * b.mask_position + head * b.mask_head + key * b.mask_key];
      scores[key] = static_cast<double>(mask) + (b.mask_replaces && mask != 0 ? 0 : scores[key]);
    }
    const double most = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    for (size_t i = 0; i < b.v.depth; ++i) {
      double value = 0;
      for (size_t key = 0; key < keys; ++key) value += scores[key] / sum * At(b.v, key, i);
      out.push_back(value);
    }
  }
  return out;
}

struct Sizes {
  size_t depth, value_depth, keys, group;
};

void ExpectTheDefinition(const nn::AttentionCode& code, const Sizes& s, size_t rows, bool causal, float cap,
                         nn::Cache::Type type) {
  const size_t first = 2, positions = (first + rows) / s.group + 1;
  const auto q = Uniform(positions * s.group * s.depth, 1), mask = Uniform(positions * s.keys, 4);
  const Stored k(type, s.keys, s.depth, 2), v(type, s.keys, s.value_depth, 3);
  std::vector<float> out(positions * s.group * s.value_depth, 77);
  std::vector<float> scratch(
      nn::ScratchFloats(code.rows, s.depth, s.value_depth, type != nn::Cache::Type::kF32), NAN);
  const nn::AttentionBlock block{.q = q.data(),
                                 .out = out.data(),
                                 .q_stride = s.group * s.depth,
                                 .out_stride = s.group * s.value_depth,
                                 .q_head = s.depth,
                                 .out_head = s.value_depth,
                                 .group = s.group,
                                 .first = first,
                                 .rows = rows,
                                 .k = k.cache,
                                 .v = v.cache,
                                 .keys = s.keys,
                                 .causal = causal,
                                 .selects = false,
                                 .mask = mask.data(),
                                 .mask_position = s.keys,
                                 .mask_head = 0,
                                 .mask_key = 1,
                                 .mask_replaces = false,
                                 .hidden = nn::kHiddenByMask,
                                 .scale = 0.4f,
                                 .cap = cap,
                                 .scratch = scratch.data()};
  code.attend(block);
  const auto expected = Expected(block);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = i - first * s.value_depth;
    if (i < first * s.value_depth || at >= expected.size()) {
      EXPECT_EQ(out[i], 77) << i;
    } else EXPECT_NEAR(static_cast<double>(out[i]), expected[at], 1e-5) << s.depth << " " << rows << " " << i;
  }
}

// Heads before positions; masks of 0 and `hidden`, which replace the scores.
void ExpectTransposed(const nn::AttentionCode& code, const Sizes& s, size_t rows, float hidden,
                      nn::Cache::Type type) {
  const size_t positions = (rows + s.group - 1) / s.group;
  const auto q = Uniform(positions * s.group * s.depth, 1);
  std::vector<float> mask = Uniform(positions * s.keys, 4);
  for (float& value : mask) value = value < 0.5f ? 0 : hidden;
  std::fill_n(mask.begin(), s.keys, hidden);  // all keys of the first position
  const Stored k(type, s.keys, s.depth, 2);
  const Stored v(type, s.keys, s.value_depth, 3, true);
  std::vector<float> out(positions * s.group * s.value_depth);
  std::vector<float> scratch(
      nn::ScratchFloats(code.rows, s.depth, s.value_depth, type != nn::Cache::Type::kF32), NAN);
  const nn::AttentionBlock block{.q = q.data(),
                                 .out = out.data(),
                                 .q_stride = s.depth,
                                 .out_stride = s.value_depth,
                                 .q_head = positions * s.depth,
                                 .out_head = positions * s.value_depth,
                                 .group = s.group,
                                 .first = 0,
                                 .rows = rows,
                                 .k = k.cache,
                                 .v = v.cache,
                                 .keys = s.keys,
                                 .causal = false,
                                 .selects = false,
                                 .mask = mask.data(),
                                 .mask_position = s.keys,
                                 .mask_head = 0,
                                 .mask_key = 1,
                                 .mask_replaces = true,
                                 .hidden = hidden,
                                 .scale = 0.1f,
                                 .cap = 0,
                                 .scratch = scratch.data()};
  code.attend(block);
  const auto expected = Expected(block);
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < s.value_depth; ++i)
      EXPECT_NEAR(static_cast<double>(out[(row % s.group * positions + row / s.group) * s.value_depth + i]),
                  expected[row * s.value_depth + i], 1e-5)
          << s.depth << " " << rows << " " << row << " " << i;
}

class Targets : public ::testing::TestWithParam<size_t> {};

TEST_P(Targets, ComputeTheDefinition) {
  const nn::AttentionCode& code = *nn::AttentionCodes()[GetParam()];
  using enum nn::Cache::Type;
  for (const Sizes& sizes : {Sizes{64, 64, 300, 1}, {7, 13, 96, 3}, {1, 1, 97, 2}, {33, 5, 1, 4}}) {
    for (size_t rows = 1; rows <= code.rows; rows += rows < 9 ? 1 : std::max<size_t>(1, code.rows / 5)) {
      for (const bool causal : {false, true})
        for (const float cap : {0.0f, 3.0f}) ExpectTheDefinition(code, sizes, rows, causal, cap, kF32);
      for (const auto type : {kF16, kI8}) ExpectTheDefinition(code, sizes, rows, true, 0, type);
    }
  }
}

TEST_P(Targets, ComputeTransposedValues) {
  const nn::AttentionCode& code = *nn::AttentionCodes()[GetParam()];
  for (const Sizes& sizes : {Sizes{64, 64, 300, 1}, {7, 13, 96, 3}, {1, 1, 97, 2}, {33, 5, 1, 4}})
    for (size_t rows = 1; rows <= code.rows; rows += rows < 9 ? 1 : std::max<size_t>(1, code.rows / 5))
      for (const float hidden : {-3.0f, -1e4f, -1e30f})
        for (const auto type : {nn::Cache::Type::kF32, nn::Cache::Type::kF16, nn::Cache::Type::kI8})
          ExpectTransposed(code, sizes, rows, hidden, type);
}

// Results of two positions with two heads. The mask hides keys outside of [97, 120) from the first position,
// and, if `hides_all`, all keys from the second one. Keys and values that are not near those are `far`.
std::vector<float> WithMask(const nn::AttentionCode& code, float hidden, bool hides_all, float far,
                            std::vector<double>* expected = nullptr) {
  constexpr size_t kKeys = 400, kDepth = 16, kGroup = 2, kRows = 4;
  const auto q = Uniform(kRows * kDepth, 1);
  auto k = Uniform(kKeys * kDepth, 2), v = Uniform(kKeys * kDepth, 3);
  std::vector<float> mask(2 * kKeys), out(kRows * kDepth),
      scratch(nn::ScratchFloats(code.rows, kDepth, kDepth, false));
  for (size_t key = 0; key < kKeys; ++key) {
    const bool seen = key >= 97 && key < 120;
    mask[key] = seen ? 0 : hidden;
    mask[kKeys + key] = seen && !hides_all ? 0 : hidden;
    if (key < 96 || key >= 192) k[key * kDepth] = v[key * kDepth] = far;
  }
  const nn::AttentionBlock block{.q = q.data(),
                                 .out = out.data(),
                                 .q_stride = kGroup * kDepth,
                                 .out_stride = kGroup * kDepth,
                                 .q_head = kDepth,
                                 .out_head = kDepth,
                                 .group = kGroup,
                                 .first = 0,
                                 .rows = kRows,
                                 .k = {k.data(), kDepth, kDepth, nn::Cache::Type::kF32, 1, 0},
                                 .v = {v.data(), kDepth, kDepth, nn::Cache::Type::kF32, 1, 0},
                                 .keys = kKeys,
                                 .causal = false,
                                 .selects = false,
                                 .mask = mask.data(),
                                 .mask_position = kKeys,
                                 .mask_head = 0,
                                 .mask_key = 1,
                                 .mask_replaces = false,
                                 .hidden = nn::kHiddenByMask,
                                 .scale = 0.4f,
                                 .cap = 0,
                                 .scratch = scratch.data()};
  code.attend(block);
  if (expected != nullptr) *expected = Expected(block);
  return out;
}

TEST_P(Targets, DoNotReadKeysThatTheMaskHides) {
  const nn::AttentionCode& code = *nn::AttentionCodes()[GetParam()];
  for (const float hidden :
       {-1e9f, std::numeric_limits<float>::lowest(), -std::numeric_limits<float>::infinity()}) {
    std::vector<double> expected;
    const auto out = WithMask(code, hidden, false, 0.5f, &expected);
    EXPECT_EQ(WithMask(code, hidden, false, NAN), out);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(static_cast<double>(out[i]), expected[i], 1e-5) << i;
  }
}

TEST_P(Targets, ReadAllKeysIfTheMaskHidesAll) {
  const nn::AttentionCode& code = *nn::AttentionCodes()[GetParam()];
  for (const float hidden : {-1e9f, std::numeric_limits<float>::lowest()}) {
    std::vector<double> expected;
    const auto out = WithMask(code, hidden, true, 0.5f, &expected);
    for (size_t i = 0; i < out.size() / 2; ++i) EXPECT_NEAR(static_cast<double>(out[i]), expected[i], 1e-5);
    // Beside such a mask f32 has no bits left for the scores: the results are means.
    const auto v = Uniform(400 * 16, 3);
    double mean = 304 * 0.5;
    for (size_t key = 96; key < 192; ++key) mean += static_cast<double>(v[key * 16]);
    EXPECT_NEAR(static_cast<double>(out[2 * 16]), mean / 400, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Targets, ::testing::Range<size_t>(0, nn::AttentionCodes().size()));

}  // namespace
}  // namespace fusebox::nn_test
