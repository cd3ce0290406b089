// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/attention/block.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/nn/attention/block.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"
#include "plugins/nn/attention/few_rows-inl.h"
#include "plugins/nn/attention/passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::nn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

constexpr size_t kPanels = 4;  // vectors of query rows in a tile
// As many rows as there are registers for their sums.
constexpr int kTileRows = (HWY_TARGET & HWY_ALL_NEON) != 0 ? 4 : HWY_TARGET <= HWY_AVX3 ? 6 : 3;

// out[r] = factor * out[r] + sum over k of a[r * a_row + k * a_step] * b[k], of vectors of query rows. No
// factor: out is not read.
struct Product {
  const float* a;
  size_t a_row, a_step;
  const float* b;
  size_t depth;
  float* out;
  const float* factor;
};

template <int kRows, int kWidth>
HWY_INLINE void MultiplyTile(const Product& product, size_t row) {
  constexpr size_t kStride = kWidth * kFloatLanes;
  const float* HWY_RESTRICT b = product.b;
  float* const out = product.out + row * kStride;
  FloatVector sums[kRows][kWidth];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kWidth; ++p) {
      sums[r][p] = product.factor ? hn::Mul(hn::LoadU(fd, out + (r * kWidth + p) * kFloatLanes),
                                            hn::LoadU(fd, product.factor + p * kFloatLanes))
                                  : hn::Zero(fd);
    }
  }
  const float* a[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) a[r] = product.a + (row + r) * product.a_row;
  for (size_t k = 0; k < product.depth; ++k, b += kStride) {
    const size_t at = k * product.a_step;
    FloatVector columns[kWidth];
#pragma GCC unroll 4
    for (int p = 0; p < kWidth; ++p) columns[p] = hn::LoadU(fd, b + p * kFloatLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const FloatVector element = hn::Set(fd, a[r][at]);
#pragma GCC unroll 4
      for (int p = 0; p < kWidth; ++p) sums[r][p] = hn::MulAdd(element, columns[p], sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kWidth; ++p) hn::StoreU(sums[r][p], fd, out + (r * kWidth + p) * kFloatLanes);
  }
}

template <int kWidth, int kRows = kTileRows>
HWY_INLINE void Multiply(const Product& product, size_t rows, size_t row = 0) {
  for (; rows - row >= kRows; row += kRows) MultiplyTile<kRows, kWidth>(product, row);
  if constexpr (kRows > 1) {
    if (row < rows) Multiply<kWidth, kRows - 1>(product, rows, row);
  }
}

// kWidth vectors of query rows.
template <int kWidth>
class Rows : public Passes<Rows<kWidth>> {
 public:
  explicit Rows(const AttentionBlock& block)
      : Passes<Rows>(block),
        q_(block.scratch),
        out_(q_ + kRows * block.k.depth),
        scores_(out_ + kRows * block.v.depth),
        most_(scores_ + kRows * kKeyBlock),
        sum_(most_ + kRows),
        factor_(sum_ + kRows),
        converted_(factor_ + kRows) {}

 private:
  friend Passes<Rows>;
  using Passes<Rows>::block_;
  using Passes<Rows>::Position;
  using Passes<Rows>::Head;
  static constexpr size_t kRows = kWidth * kFloatLanes;

  float Most(size_t row) const { return most_[row]; }

  void Clear() {
    for (size_t p = 0; p < kRows; p += kFloatLanes) {
      hn::StoreU(hn::Set(fd, kNone), fd, most_ + p);
      hn::StoreU(hn::Zero(fd), fd, sum_ + p);
    }
    std::fill_n(out_, kRows * block_.v.depth, 0.0f);
  }

  // Transposed and scaled. Rows that do not exist are zero.
  void LoadQueries() {
    const float scale = this->QueryScale();
    const size_t depth = block_.k.depth;
    for (size_t row = 0; row < kRows; ++row) {
      const float* const q = block_.q + Position(row) * block_.q_stride + Head(row) * block_.q_head;
      for (size_t i = 0; i < depth; ++i) q_[i * kRows + row] = row < block_.rows ? q[i] * scale : 0;
    }
  }

  void Step(size_t begin, size_t end, float hidden) {
    const Plain k = Converted(block_.k, begin, end, converted_);
    Multiply<kWidth>({k.data, k.key, 1, q_, block_.k.depth, scores_, nullptr}, end - begin);
    if (block_.cap > 0) Cap(end - begin);
    if (block_.mask) AddMask(begin, end);
    if (block_.causal && end > Position(0) + 1) HideLater(begin, end, hidden);
    for (size_t p = 0; p < kRows; p += kFloatLanes) Exponentiate(p, end - begin);
    const Plain v = Converted(block_.v, begin, end, converted_ + kKeyBlock * block_.k.depth);
    Multiply<kWidth>({v.data, v.feature, v.key, scores_, end - begin, out_, factor_}, block_.v.depth);
  }

  void Cap(size_t keys) {
    for (size_t i = 0; i < keys * kRows; i += kFloatLanes)
      hn::StoreU(hn::Mul(hn::Set(fd, block_.cap), Tanh(fd, hn::LoadU(fd, scores_ + i))), fd, scores_ + i);
  }

  void AddMask(size_t begin, size_t end) {
    const hn::RebindToSigned<FloatTag> di;
    const float* const mask = block_.mask + Position(0) * block_.mask_position + begin * block_.mask_key;
    for (size_t p = 0; p < kRows; p += kFloatLanes) {
      HWY_ALIGN int32_t offsets[kFloatLanes];
      for (size_t i = 0; i < kFloatLanes; ++i) {
        const size_t row = std::min(p + i, block_.rows - 1);
        offsets[i] = static_cast<int32_t>((Position(row) - Position(0)) * block_.mask_position +
                                          Head(row) * block_.mask_head);
      }
      const auto indices = hn::Load(di, offsets);
      for (size_t key = 0; key < end - begin; ++key) {
        float* const score = scores_ + key * kRows + p;
        const FloatVector added = hn::GatherIndex(fd, mask + key * block_.mask_key, indices);
        FloatVector sum = hn::Add(hn::LoadU(fd, score), added);
        if (block_.mask_replaces) sum = hn::IfThenElse(hn::Ne(added, hn::Zero(fd)), added, sum);
        hn::StoreU(sum, fd, score);
      }
    }
  }

  void HideLater(size_t begin, size_t end, float hidden) {
    for (size_t row = 0; row < block_.rows; ++row)
      for (size_t key = std::max(begin, Position(row) + 1); key < end; ++key)
        this->Hide(scores_[(key - begin) * kRows + row], hidden);
  }

  // Scores of one vector of rows become exp(score - maximum); updates maximum, sum, and the factor of what
  // was summed before.
  void Exponentiate(size_t p, size_t keys) {
    float* const scores = scores_ + p;
    const FloatVector before = hn::LoadU(fd, most_ + p);
    // A NaN may be lost here, but not below.
    FloatVector most = before;
    for (size_t key = 0; key < keys; ++key) most = hn::Max(most, hn::LoadU(fd, scores + key * kRows));
    // Rows that have seen no key yet: exp(-inf - 0) is 0, exp(-inf + inf) is not.
    const FloatVector base = hn::IfThenZeroElse(hn::Eq(most, hn::Set(fd, kNone)), most);
    const FloatVector factor = Exp(before, base);
    FloatVector sum = hn::Mul(hn::LoadU(fd, sum_ + p), factor);
    for (size_t key = 0; key < keys; ++key) {
      const FloatVector e = Exp(hn::LoadU(fd, scores + key * kRows), base);
      hn::StoreU(e, fd, scores + key * kRows);
      sum = hn::Add(sum, e);
    }
    hn::StoreU(most, fd, most_ + p);
    hn::StoreU(sum, fd, sum_ + p);
    hn::StoreU(factor, fd, factor_ + p);
  }

  void StoreResults() const {
    const size_t depth = block_.v.depth;
    for (size_t row = 0; row < block_.rows; ++row) {
      float* const out = block_.out + Position(row) * block_.out_stride + Head(row) * block_.out_head;
      const float factor = this->ResultScale() / sum_[row];
      for (size_t i = 0; i < depth; ++i) out[i] = out_[i * kRows + row] * factor;
    }
  }

  float *q_, *out_, *scores_, *most_, *sum_, *factor_, *converted_;
};

void Attend(const AttentionBlock& block) {
  if (block.rows <= FewRows::kMost) return FewRows(block).Attend();
  switch ((block.rows + kFloatLanes - 1) / kFloatLanes) {
    case 1: return Rows<1>(block).Attend();
    case 2: return Rows<2>(block).Attend();
    case 3: return Rows<3>(block).Attend();
    default: return Rows<4>(block).Attend();
  }
}

const AttentionCode& Code() {
  static constexpr AttentionCode code{kPanels * kFloatLanes, Attend};
  return code;
}

}  // namespace fusebox::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::nn {

std::vector<const AttentionCode*> AttentionCodes() { return FUSEBOX_SIMD_TABLES(AttentionCode, Code); }

}  // namespace fusebox::nn
#endif
