// SPDX-License-Identifier: Apache-2.0
#define FUSEBOX_FLOATS_ONLY
#include "plugins/math/gemm/f32.h"

#include <algorithm>

#include "plugins/math/costs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/math/gemm/f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/gemm/tile-inl.h"
#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A part of the depth: whole segments, or elements [begin, begin + length) of the only one.
struct Part {
  size_t first_segment;
  size_t segments;
  size_t begin;
  size_t length;
  size_t before;  // elements of the depth before this part
  bool first;
  bool last;
  bool clamps;  // if it is the last
};

template <int kRows, int kPanels>
struct Sums {
  FloatVector of[kRows][kPanels];
};

// `sums = {}` would do, but gcc warns of it for NEON's vectors.
template <int kRows, int kPanels>
HWY_INLINE void ClearTile(Sums<kRows, kPanels>& sums) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums.of[r][p] = hn::Zero(fd);
  }
}

// row(r) is the first value of the tile's row. `left`: outputs of the last panel.
template <int kRows, int kPanels, class Row>
HWY_INLINE void LoadTile(Sums<kRows, kPanels>& sums, size_t left, const Row& row) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const float* const from = row(r);
#pragma GCC unroll 4
    for (int p = 0; p + 1 < kPanels; ++p) sums.of[r][p] = hn::LoadU(fd, from + p * kFloatLanes);
    sums.of[r][kPanels - 1] = LoadSome(from + (kPanels - 1) * kFloatLanes, left);
  }
}

// The first `count` rows, from output `first` on.
template <int kRows, int kPanels>
HWY_INLINE void StoreTile(const Sums<kRows, kPanels>& sums, float* const* rows, size_t first, size_t count,
                          size_t left) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (static_cast<size_t>(r) >= count) return;
    float* const to = rows[r] + first;
#pragma GCC unroll 4
    for (int p = 0; p + 1 < kPanels; ++p) hn::StoreU(sums.of[r][p], fd, to + p * kFloatLanes);
    StoreSome(sums.of[r][kPanels - 1], to + (kPanels - 1) * kFloatLanes, left);
  }
}

template <int kRows, int kPanels>
HWY_INLINE void ClampTile(Sums<kRows, kPanels>& sums, float low, float high) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p)
      sums.of[r][p] = Clamp(fd, sums.of[r][p], hn::Set(fd, low), hn::Set(fd, high));
  }
}

// Adds the products of element k of the rows. The fewer of the operands stay in registers.
template <int kRows, int kPanels>
HWY_INLINE void AddProducts(Sums<kRows, kPanels>& sums, const float* HWY_RESTRICT weights,
                            const float* const (&a)[kRows], ptrdiff_t k) {
  if constexpr (kRows < kPanels) {
    FloatVector values[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) values[r] = hn::Set(fd, a[r][k]);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const FloatVector b = hn::LoadU(fd, weights + p * kFloatLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums.of[r][p] = hn::MulAdd(b, values[r], sums.of[r][p]);
    }
  } else {
    FloatVector b[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) b[p] = hn::LoadU(fd, weights + p * kFloatLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const FloatVector value = hn::Set(fd, a[r][k]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sums.of[r][p] = hn::MulAdd(b[p], value, sums.of[r][p]);
    }
  }
}

// Rows from `row` on; those beyond the last repeat it and are not stored.
template <int kRows, int kPanels>
HWY_INLINE void Tile(const F32Task& task, const Rows<float>& rows, size_t row, size_t group,
                     const Part& part) {
  const size_t count = std::min<size_t>(kRows, rows.m - row);
  const size_t output = group * kGroupPanels * kFloatLanes;
  const size_t left = task.layout.n - output - (kPanels - 1) * kFloatLanes;
  const auto at = [&](int r) { return row + std::min<size_t>(r, count - 1); };
  Sums<kRows, kPanels> sums;
  if (!part.first) {
    LoadTile(sums, left, [&](int r) { return rows.c[at(r)] + output; });
  } else if (task.start) {
    LoadTile(sums, left, [&](int r) { return task.start + at(r) * task.start_stride + output; });
  } else {
    ClearTile(sums);
  }
  const float* HWY_RESTRICT weights =
      task.weights + output * task.layout.k + part.before * kPanels * kFloatLanes;
  const float* a[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) a[r] = rows.a[at(r)] + part.begin;
  for (size_t s = part.first_segment; s < part.first_segment + part.segments; ++s) {
    ptrdiff_t k = rows.offsets[s];
    for (size_t steps = part.length; steps != 0; --steps, ++k) {
      AddProducts(sums, weights, a, k);
      weights += kPanels * kFloatLanes;
    }
  }
  if (part.last && part.clamps) ClampTile(sums, task.low, task.high);
  StoreTile(sums, rows.c + row, output, count, left);
}

// Whole groups, which most outputs are in, have a tile for every number of rows.
template <int kPanels, int kRows = kTileRows<kPanels>>
HWY_INLINE void Tiles(const F32Task& task, const Rows<float>& rows, size_t group, const Part& part,
                      size_t row = 0) {
  for (; rows.m - row >= kRows; row += kRows) Tile<kRows, kPanels>(task, rows, row, group, part);
  if (row == rows.m) return;
  if constexpr (kPanels == kGroupPanels && kRows > 1) {
    Tiles<kPanels, kRows - 1>(task, rows, group, part, row);
  } else if constexpr (kRows > 1) {
    if (rows.m - row == 1) Tile<1, kPanels>(task, rows, row, group, part);
    else Tile<kRows, kPanels>(task, rows, row, group, part);
  }
}

void MultiplyPart(const F32Task& task, const Rows<float>& rows, size_t group, const Part& part) {
  switch (std::min(kGroupPanels, task.layout.panels() - group * kGroupPanels)) {
    case 1: return Tiles<1>(task, rows, group, part);
    case 2: return Tiles<2>(task, rows, group, part);
    case 3: return Tiles<3>(task, rows, group, part);
    default: return Tiles<4>(task, rows, group, part);
  }
}

// One row with two whole groups: two streams of weights arrive faster than one.
HWY_INLINE void TwoGroups(const F32Task& task, const Rows<float>& rows, size_t group, bool clamps) {
  constexpr size_t kWidth = kGroupPanels * kFloatLanes;
  const size_t output = group * kWidth;
  const size_t left = task.layout.n - output - 2 * kWidth + kFloatLanes;
  Sums<1, kGroupPanels> sums[2];
  if (task.start) {
    LoadTile(sums[0], kFloatLanes, [&](int) { return task.start + output; });
    LoadTile(sums[1], left, [&](int) { return task.start + output + kWidth; });
  } else {
    ClearTile(sums[0]);
    ClearTile(sums[1]);
  }
  const float* HWY_RESTRICT first = task.weights + output * task.layout.k;
  const float* HWY_RESTRICT second = first + kWidth * task.layout.k;
  for (size_t s = 0; s < rows.segments; ++s) {
    const float* const a[1] = {rows.a[0] + rows.offsets[s] + rows.segment};
    for (auto k = -static_cast<ptrdiff_t>(rows.segment); k != 0; ++k, first += kWidth, second += kWidth) {
      AddProducts(sums[0], first, a, k);
      AddProducts(sums[1], second, a, k);
    }
  }
  if (clamps) {
    ClampTile(sums[0], task.low, task.high);
    ClampTile(sums[1], task.low, task.high);
  }
  StoreTile(sums[0], rows.c, output, 1, kFloatLanes);
  StoreTile(sums[1], rows.c, output + kWidth, 1, left);
}

void Multiply(const F32Task& task, const Rows<float>& rows, size_t begin, size_t end) {
  constexpr size_t kDepth = kWeightsBytes / (kGroupPanels * kMaxLanes * sizeof(float));  // for all rows
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool clamps = task.low > -kInfinity || task.high < kInfinity;
  const bool parts = rows.m > kTileRows<kGroupPanels>;
  const size_t step =
      !parts ? rows.segments : std::max<size_t>(1, kDepth / std::max<size_t>(1, rows.segment));
  const size_t length = parts && rows.segments == 1 ? std::min(kDepth, rows.segment) : rows.segment;
  for (size_t group = begin; group < end; ++group) {
    if (rows.m == 1 && group + 1 < end && (group + 2) * kGroupPanels <= task.layout.panels()) {
      TwoGroups(task, rows, group++, clamps);
      continue;
    }
    Part part{.first_segment = 0,
              .segments = 0,
              .begin = 0,
              .length = length,
              .before = 0,
              .first = true,
              .last = false,
              .clamps = clamps};
    while (!part.last) {
      part.segments = std::min(step, rows.segments - part.first_segment);
      part.length = std::min(length, rows.segment - part.begin);
      const size_t elements = part.segments * part.length;
      part.last = part.before + elements >= task.layout.k;
      MultiplyPart(task, rows, group, part);
      part.first = false;
      part.before += elements;
      if (rows.segments == 1) part.begin += part.length;
      else part.first_segment += part.segments;
    }
  }
}

const F32Kernels& CodeOfF32() {
  static constexpr F32Kernels code{kFloatLanes, Multiply};
  return code;
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::math {
namespace {

// Where packed output `n` begins, and the distance of its elements.
struct PackedOutput {
  size_t first;
  size_t stride;

  PackedOutput(const F32Layout& layout, size_t n) {
    const size_t panel = n / layout.lanes;
    const size_t group = panel / kGroupPanels;
    stride = std::min(kGroupPanels, layout.panels() - group * kGroupPanels) * layout.lanes;
    first = group * kGroupPanels * layout.lanes * layout.k + panel % kGroupPanels * layout.lanes +
            n % layout.lanes;
  }
};

}  // namespace

std::vector<const F32Kernels*> AllF32Kernels() { return FUSEBOX_SIMD_TABLES(F32Kernels, CodeOfF32); }

void PackF32Row(const F32Layout& layout, size_t output, const float* row, float* to) {
  const PackedOutput at(layout, output);
  for (size_t k = 0; k < layout.k; ++k) to[at.first + k * at.stride] = row[k];
}

void PackF32(const F32Layout& layout, const float* b, float* to) {
  for (size_t first = 0; first < layout.n; first += layout.lanes) {
    const PackedOutput at(layout, first);
    const size_t count = std::min(layout.lanes, layout.n - first);
    float* panel = to + at.first;
    for (size_t k = 0; k < layout.k; ++k, panel += at.stride) {
      for (size_t i = 0; i < count; ++i) panel[i] = b[(first + i) * layout.k + k];
      std::fill(panel + count, panel + layout.lanes, 0.0f);
    }
  }
}

void PackF32Transposed(const F32Layout& layout, const float* b, float* to) {
  for (size_t first = 0; first < layout.n; first += kGroupPanels * layout.lanes) {
    const PackedOutput at(layout, first);
    const size_t count = std::min(at.stride, layout.n - first);
    for (size_t k = 0; k < layout.k; ++k, to += at.stride)
      std::fill(std::copy_n(b + k * layout.n + first, count, to), to + at.stride, 0.0f);
  }
}

}  // namespace fusebox::math
#endif
