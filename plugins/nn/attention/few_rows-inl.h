// SPDX-License-Identifier: Apache-2.0
// Attention of few query rows, as in decoding one token: vectors hold features, so that no lane is empty and
// a key is read at once. Compiled once per target.
#if defined(FUSEBOX_NN_ATTENTION_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_NN_ATTENTION_FEW_ROWS_INL_H_
#undef FUSEBOX_NN_ATTENTION_FEW_ROWS_INL_H_
#else
#define FUSEBOX_NN_ATTENTION_FEW_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "plugins/math/simd/vector-inl.h"
#include "plugins/nn/attention/passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::nn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

// Scores are [row][key], outputs [row][feature].
class FewRows : public Passes<FewRows> {
 public:
  static constexpr size_t kMost = 8;  // with more rows, a tile of query rows is faster

  explicit FewRows(const AttentionBlock& block)
      : Passes(block),
        q_(block.scratch),
        out_(q_ + block.rows * block.k.depth),
        scores_(out_ + block.rows * block.v.depth),
        converted_(scores_ + block.rows * kKeyBlock) {}

 private:
  friend Passes<FewRows>;
  static constexpr size_t kTile = 4;  // rows, and vectors of features, whose sums are in registers

  float Most(size_t row) const { return most_[row]; }

  void LoadQueries() {
    const float scale = QueryScale();
    const size_t depth = block_.k.depth;
    for (size_t row = 0; row < block_.rows; ++row) {
      const float* const q = block_.q + Position(row) * block_.q_stride + Head(row) * block_.q_head;
      for (size_t i = 0; i < depth; ++i) q_[row * depth + i] = q[i] * scale;
    }
  }

  void Clear() {
    std::fill_n(most_, kMost, kNone);
    std::fill_n(sum_, kMost, 0.0f);
    std::fill_n(out_, block_.rows * block_.v.depth, 0.0f);
  }

  void Step(size_t begin, size_t end, float hidden) {
    const Plain k = Converted(block_.k, begin, end, converted_);
    for (size_t key = 0; key < end - begin; ++key) {
      const float* const row = k.data + key * k.key;
      // The heads of one position may be adjacent: then the next key is not.
      for (size_t i = 0; i < block_.k.depth; i += 64 / sizeof(float))
        __builtin_prefetch(row + kAhead * k.key + i);
      for (size_t r = 0; r < block_.rows; ++r)
        scores_[r * kKeyBlock + key] = Dot(q_ + r * block_.k.depth, row, block_.k.depth);
    }
    for (size_t row = 0; row < block_.rows; ++row) {
      if (block_.cap > 0) Cap(row, end - begin);
      if (block_.mask) AddMask(row, begin, end);
      for (size_t key = std::max(begin, Position(row) + 1); block_.causal && key < end; ++key)
        Hide(scores_[row * kKeyBlock + key - begin], hidden);
      Exponentiate(row, end - begin);
    }
    const Plain v = Converted(block_.v, begin, end, converted_ + kKeyBlock * block_.k.depth);
    for (size_t row = 0; row < block_.rows; row += kTile) {
      switch (std::min(kTile, block_.rows - row)) {
        case 1: AddValues<1>(row, v, end - begin); break;
        case 2: AddValues<2>(row, v, end - begin); break;
        case 3: AddValues<3>(row, v, end - begin); break;
        default: AddValues<kTile>(row, v, end - begin); break;
      }
    }
  }

  static HWY_INLINE float Dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t depth) {
    FloatVector x = hn::Zero(fd);
    FloatVector y = x;
    size_t i = 0;
    for (; i + 2 * kFloatLanes <= depth; i += 2 * kFloatLanes) {
      x = hn::MulAdd(hn::LoadU(fd, a + i), hn::LoadU(fd, b + i), x);
      y = hn::MulAdd(hn::LoadU(fd, a + i + kFloatLanes), hn::LoadU(fd, b + i + kFloatLanes), y);
    }
    for (; i < depth; i += kFloatLanes) {
      const size_t left = std::min(kFloatLanes, depth - i);
      x = hn::MulAdd(hn::LoadN(fd, a + i, left), hn::LoadN(fd, b + i, left), x);
    }
    return hn::ReduceSum(fd, hn::Add(x, y));
  }

  void Cap(size_t row, size_t keys) {
    float* const scores = scores_ + row * kKeyBlock;
    for (size_t i = 0; i < keys; i += kFloatLanes)
      hn::StoreU(hn::Mul(hn::Set(fd, block_.cap), Tanh(fd, hn::LoadU(fd, scores + i))), fd, scores + i);
  }

  void AddMask(size_t row, size_t begin, size_t end) {
    const float* const mask =
        block_.mask + Position(row) * block_.mask_position + Head(row) * block_.mask_head;
    float* const scores = scores_ + row * kKeyBlock;
    for (size_t key = begin; key < end; ++key) {
      const float added = mask[key * block_.mask_key];
      float& score = scores[key - begin];
      score = block_.mask_replaces && added != 0 ? added : score + added;
    }
  }

  // Scores become exp(score - maximum), and 0 up to the next vector. What was summed before is scaled.
  void Exponentiate(size_t row, size_t keys) {
    float* const scores = scores_ + row * kKeyBlock;
    const size_t padded = (keys + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
    std::fill(scores + keys, scores + padded, kNone);
    // A NaN may be lost here, but not below.
    FloatVector most = hn::Set(fd, most_[row]);
    for (size_t i = 0; i < padded; i += kFloatLanes) most = hn::Max(most, hn::LoadU(fd, scores + i));
    const float before = most_[row];
    most_[row] = hn::ReduceMax(fd, most);
    // Rows that have seen no key yet: exp(-inf - 0) is 0, exp(-inf + inf) is not.
    const FloatVector base = hn::Set(fd, most_[row] == kNone ? 0 : most_[row]);
    FloatVector sum = hn::Zero(fd);
    for (size_t i = 0; i < padded; i += kFloatLanes) {
      const FloatVector e = Exp(hn::LoadU(fd, scores + i), base);
      hn::StoreU(e, fd, scores + i);
      sum = hn::Add(sum, e);
    }
    const float factor = hn::GetLane(Exp(hn::Set(fd, before), base));
    sum_[row] = sum_[row] * factor + hn::ReduceSum(fd, sum);
    if (factor == 1) return;
    for (float* out = out_ + row * block_.v.depth; out != out_ + (row + 1) * block_.v.depth; ++out)
      *out *= factor;
  }

  // Adds the values, weighted by the scores of kRows rows, where the keys of a feature are adjacent. The next
  // feature lies in another page.
  template <size_t kRows>
  HWY_INLINE void AddTransposed(size_t row, const Plain& v, size_t keys) {
    const size_t depth = block_.v.depth;
    const float* const weights = scores_ + row * kKeyBlock;
    for (size_t i = 0; i < depth; ++i) {
      const float* const values = v.data + i * v.feature;
      FloatVector sums[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(fd);
      for (size_t key = 0; key < keys; key += kFloatLanes) {
        __builtin_prefetch(values + kAhead * v.feature + key);
        const FloatVector column = LoadSome(values + key, keys - key);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r)
          sums[r] = hn::MulAdd(hn::LoadU(fd, weights + r * kKeyBlock + key), column, sums[r]);
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) out_[(row + r) * depth + i] += hn::ReduceSum(fd, sums[r]);
    }
  }

  // Adds the values, weighted by the scores of kRows rows.
  template <size_t kRows>
  HWY_INLINE void AddValues(size_t row, const Plain& v, size_t keys) {
    if (block_.v.transposed) return AddTransposed<kRows>(row, v, keys);
    const size_t depth = block_.v.depth;
    size_t i = 0;
    for (; i + kTile * kFloatLanes <= depth; i += kTile * kFloatLanes)
      AddFeatures<kRows, kTile>(row, v, keys, i);
    for (; i + kFloatLanes <= depth; i += kFloatLanes) AddFeatures<kRows, 1>(row, v, keys, i);
    for (; i < depth; ++i) {
      for (size_t r = row; r < row + kRows; ++r)
        for (size_t key = 0; key < keys; ++key)
          out_[r * depth + i] += scores_[r * kKeyBlock + key] * v.data[key * v.key + i];
    }
  }

  template <size_t kRows, size_t kVectors>
  HWY_INLINE void AddFeatures(size_t row, const Plain& v, size_t keys, size_t feature) {
    float* const out = out_ + row * block_.v.depth + feature;
    const float* const weights = scores_ + row * kKeyBlock;
    FloatVector sums[kRows][kVectors];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t p = 0; p < kVectors; ++p)
        sums[r][p] = hn::LoadU(fd, out + r * block_.v.depth + p * kFloatLanes);
    }
    for (size_t key = 0; key < keys; ++key) {
      const float* const values = v.data + key * v.key + feature;
      FloatVector columns[kVectors];
#pragma GCC unroll 4
      for (size_t p = 0; p < kVectors; ++p) {
        __builtin_prefetch(values + kAhead * v.key + p * kFloatLanes);
        columns[p] = hn::LoadU(fd, values + p * kFloatLanes);
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const FloatVector weight = hn::Set(fd, weights[r * kKeyBlock + key]);
#pragma GCC unroll 4
        for (size_t p = 0; p < kVectors; ++p) sums[r][p] = hn::MulAdd(weight, columns[p], sums[r][p]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t p = 0; p < kVectors; ++p)
        hn::StoreU(sums[r][p], fd, out + r * block_.v.depth + p * kFloatLanes);
    }
  }

  void StoreResults() const {
    const size_t depth = block_.v.depth;
    for (size_t row = 0; row < block_.rows; ++row) {
      float* const out = block_.out + Position(row) * block_.out_stride + Head(row) * block_.out_head;
      const float factor = ResultScale() / sum_[row];
      for (size_t i = 0; i < depth; ++i) out[i] = out_[row * depth + i] * factor;
    }
  }

  static constexpr size_t kAhead = 16;  // keys that are prefetched

  float *q_, *out_, *scores_, *converted_;
  float most_[kMost], sum_[kMost];
};

}  // namespace fusebox::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
