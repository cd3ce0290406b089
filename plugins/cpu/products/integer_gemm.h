// SPDX-License-Identifier: Apache-2.0
// Integer matrix products for quantized ops, before scaling. Operands are 16-bit, so that a byte minus its
// zero point fits and two adjacent products are one instruction. Sums are 32-bit, or 64-bit for 16-bit
// operands.
#pragma once

#include <algorithm>
#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/base/shape.h"

namespace fusebox::cpu {

using namespace sdk;

// c[i][j] = sum over p of a[i][p] * b[j][p], modulo 2^32 if Sum is int32_t. Leading dimensions are in
// elements. Elements of b are in [-255, 255] unless `wide`; so are elements of a if Sum is int32_t.
template <class Sum>
struct IntegerProduct {
  const int16_t* a;
  int64_t lda;
  const int16_t* b;
  int64_t ldb;
  Sum* c;
  int64_t ldc;
  int64_t m, n, k;
  bool wide = false;  // int64_t only
};
void Multiply(const IntegerProduct<int32_t>& product);
void Multiply(const IntegerProduct<int64_t>& product);

// The lines of a depthwise window, whose taps are packed in fours. Adjacent pixels that the fours of a line
// reach have separate weights, moved by `step` taps each.
struct TapLines {
  int64_t taps = 0;  // none: not such a window
  int64_t step = 0;
  int64_t pixels = 1;

  int64_t padded() const { return (taps + 3) / 4 * 4; }
  bool operator==(const TapLines&) const = default;
};

// A product with weights [groups][n][k], in parallel tasks of some rows and outputs.
struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t groups = 1;
  TapLines lines = {};
};
struct ProductPlan {
  int64_t chunk = 1;     // rows per task
  uint32_t workers = 0;  // number of scratch areas
  bool copied = false;
  bool wide = false;
  uint32_t rows_slot = 0;
  uint32_t sums_slot = 0;
};
inline constexpr int64_t kProductColumns = 64;  // columns per task

// `copied`: rows are built in scratch. `wide`: as in IntegerProduct.
ProductPlan PlanProduct(Plan& plan, const ProductShape& shape, bool copied, bool wide);

struct ProductRows {
  const int16_t* at;
  int64_t stride;
};

// rows(group, first, count, scratch) returns ProductRows. done(first row, count, first column over all
// groups, columns, sums) receives sums with `columns` per row.
template <class Rows, class Done>
void RunProduct(const Node& n, const ProductPlan& plan, const ProductShape& s, const int16_t* weights,
                const Rows& rows, const Done& done) {
  if (s.m == 0 || s.n == 0) return;
  const int64_t blocks = (s.n + kProductColumns - 1) / kProductColumns;
  const int64_t chunks = (s.m + plan.chunk - 1) / plan.chunk;
  int16_t* made = plan.copied ? n.scratch<int16_t>(plan.rows_slot) : nullptr;
  int64_t* all_sums = n.scratch<int64_t>(plan.sums_slot);
  const auto run = [&](size_t begin, size_t end, uint32_t worker) {
    int16_t* scratch = made ? made + worker * plan.chunk * s.k : nullptr;
    int64_t* sums = all_sums + worker * plan.chunk * kProductColumns;
    for (int64_t task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
      const int64_t group = task / chunks / blocks;
      const int64_t block = task / chunks % blocks;
      const int64_t first = task % chunks * plan.chunk;
      const int64_t column = block * kProductColumns;
      const int64_t count = std::min(plan.chunk, s.m - first);
      const int64_t columns = std::min(kProductColumns, s.n - column);
      const ProductRows a = rows(group, first, count, scratch);
      const int64_t channel = group * s.n + column;
      Multiply(IntegerProduct<int64_t>{a.at, a.stride, weights + channel * s.k, s.k, sums, columns, count,
                                       columns, s.k, plan.wide});
      done(first, count, channel, columns, sums);
    }
  };
  const size_t tasks = static_cast<size_t>(s.groups * blocks * chunks);
  if (thread_count(n.host()) > plan.workers) return run(0, tasks, 0);
  ParallelFor(n.host(), tasks, Grain(plan.chunk * kProductColumns * s.k / math::kWordsPerUnit), run);
}

}  // namespace fusebox::cpu
