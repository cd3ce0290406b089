// SPDX-License-Identifier: Apache-2.0
// Passes over the keys of a block of attention. Compiled once per target.
#if defined(FUSEBOX_NN_ATTENTION_PASSES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_NN_ATTENTION_PASSES_INL_H_
#undef FUSEBOX_NN_ATTENTION_PASSES_INL_H_
#else
#define FUSEBOX_NN_ATTENTION_PASSES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "plugins/math/simd/vector-inl.h"
#include "plugins/nn/attention/block.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::nn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

constexpr float kNone = -std::numeric_limits<float>::infinity();

HWY_INLINE void FromHalf(const uint16_t* from, size_t count, float* to) {
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  const auto* const half = reinterpret_cast<const hwy::float16_t*>(from);
  size_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes)
    hn::StoreU(hn::PromoteTo(fd, hn::LoadU(dh, half + i)), fd, to + i);
  if (i < count) hn::StoreN(hn::PromoteTo(fd, hn::LoadN(dh, half + i, count - i)), fd, to + i, count - i);
}

HWY_INLINE void FromBytes(const int8_t* from, size_t count, int32_t zero, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] - zero);
}

// Keys [begin, end) of a cache in f32; their scale is the caller's. f32 stays in place.
struct Plain {
  const float* data;
  size_t key, feature;  // elements from one to the next
};

Plain Converted(const Cache& cache, size_t begin, size_t end, float* to) {
  const size_t lines = cache.transposed ? cache.depth : end - begin;
  const size_t count = cache.transposed ? end - begin : cache.depth;
  const size_t first = cache.transposed ? begin : begin * cache.stride;
  const auto plain = [&](const float* data, size_t line) {
    return cache.transposed ? Plain{data, 1, line} : Plain{data, line, 1};
  };
  if (cache.type == Cache::Type::kF32)
    return plain(static_cast<const float*>(cache.data) + first, cache.stride);
  for (size_t line = 0; line < lines; ++line) {
    const size_t at = first + line * cache.stride;
    if (cache.type == Cache::Type::kF16) {
      FromHalf(static_cast<const uint16_t*>(cache.data) + at, count, to + line * count);
    } else {
      FromBytes(static_cast<const int8_t*>(cache.data) + at, count, cache.zero, to + line * count);
    }
  }
  return plain(to, count);
}

// exp(score - base)
HWY_INLINE FloatVector Exp(FloatVector score, FloatVector base) {
  return Exp2(hn::Mul(hn::Sub(score, base), hn::Set(fd, kLog2E)));
}

// Passes over the keys of a block, with what does not depend on the layout of the scores. Self has
// LoadQueries(), Clear(), Step(begin, end, hidden), Most(row), StoreResults().
template <class Self>
class Passes {
 public:
  explicit Passes(const AttentionBlock& block) : block_(block) {}

  void Attend() {
    self().LoadQueries();
    const bool skipped = Pass(LastKey(), kNone, block_.mask != nullptr);
    const float seen = block_.mask_replaces ? block_.hidden + kWeightless : block_.hidden / 2;
    for (size_t row = 0; (block_.causal || skipped) && row < block_.rows; ++row) {
      const float most = self().Most(row);
      if (skipped ? most > seen : most != kNone) continue;
      // No score of the row is a usual number. Then the keys that a mask of finite values hides weigh more.
      Pass(block_.keys, std::numeric_limits<float>::lowest(), false);
      break;
    }
    self().StoreResults();
  }

 protected:
  size_t Position(size_t row) const { return (block_.first + row) / block_.group; }
  size_t Head(size_t row) const { return (block_.first + row) % block_.group; }
  // Keys from this on are not seen by any row.
  size_t LastKey() const {
    return block_.causal ? std::min(block_.keys, Position(block_.rows - 1) + 1) : block_.keys;
  }

  float QueryScale() const {
    float scale = block_.scale;
    if (block_.cap > 0) scale /= block_.cap;
    return block_.k.type == Cache::Type::kI8 ? scale * block_.k.scale : scale;
  }
  float ResultScale() const { return block_.v.type == Cache::Type::kI8 ? block_.v.scale : 1; }

  void Hide(float& score, float hidden) const {
    const bool adds = hidden != kNone && !block_.selects;
    score = adds ? score + hidden : hidden;
  }

  const AttentionBlock& block_;

 private:
  Self& self() { return static_cast<Self&>(*this); }

  // `hidden` replaces the scores of keys that a row must not see, or is added to them. `skips`: blocks of
  // keys that the mask hides from all rows are not read. Returns whether there were any.
  bool Pass(size_t keys, float hidden, bool skips) {
    self().Clear();
    bool skipped = false;
    for (size_t key = 0; key < keys; key += kKeyBlock) {
      const size_t end = std::min(key + kKeyBlock, keys);
      if (skips && MaskHides(key, end)) skipped = true;
      else self().Step(key, end, hidden);
    }
    return skipped;
  }

  bool MaskHides(size_t begin, size_t end) const {
    for (size_t row = block_.rows; row-- > 0;) {  // the last ones see most
      const size_t head = Head(row);
      if (head > 0 && row > 0 && block_.mask_head == 0) continue;  // as the row before
      const float* const mask = block_.mask + Position(row) * block_.mask_position + head * block_.mask_head;
      if (!AllHidden(mask + begin * block_.mask_key, block_.mask_key == 0 ? 1 : end - begin)) return false;
    }
    return true;
  }

  bool AllHidden(const float* mask, size_t keys) const {
    size_t key = 0;
    for (; key + kFloatLanes <= keys; key += kFloatLanes)
      if (!hn::AllTrue(fd, hn::Le(hn::LoadU(fd, mask + key), hn::Set(fd, block_.hidden)))) return false;
    while (key < keys && mask[key] <= block_.hidden) ++key;
    return key == keys;
  }
};

}  // namespace fusebox::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
