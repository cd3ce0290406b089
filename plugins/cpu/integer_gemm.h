// SPDX-License-Identifier: Apache-2.0
// Matrix products of integers: the sums of quantised ops, before they are scaled. Operands are 16 bits wide, so that any
// byte less its zero point fits and two neighbouring products are one instruction.
#pragma once

#include <algorithm>
#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/shape.h"

namespace fusebox::cpu {

// c[i][j] = sum over p of a[i][p] * b[j][p], modulo 2^32. Leading dimensions count elements; the elements of a and b lie
// in [-255, 255].
struct IntegerProduct {
  const int16_t* a;
  int64_t lda;
  const int16_t* b;
  int64_t ldb;
  int32_t* c;
  int64_t ldc;
  int64_t m, n, k;
};
void Multiply(const IntegerProduct& product);

// A product by constant rows of weights, [groups, columns, depth], done in parallel tasks of some rows by some columns.
struct ProductShape {
  int64_t rows, columns, depth, groups = 1;
};
struct ProductPlan {
  int64_t chunk = 1;     // rows at a time
  uint32_t workers = 0;  // for which there is scratch
  bool copied = false;
  uint32_t rows_slot = 0, sums_slot = 0;
};
inline constexpr int64_t kProductColumns = 64;  // at a time

// `copied`: the rows are made in scratch.
inline ProductPlan PlanProduct(Plan& plan, const ProductShape& s, bool copied) {
  constexpr int64_t kCacheBytes = 64 * 1024;
  ProductPlan p;
  p.workers = std::max(1u, plan.threads());
  const int64_t row = std::max<int64_t>(1, Product(s.depth, sizeof(int16_t)));
  p.chunk = std::clamp<int64_t>(kCacheBytes / row / 4 * 4, 4, 64);
  p.copied = copied;
  if (copied) p.rows_slot = plan.scratch(static_cast<size_t>(Product(Product(p.chunk, row), p.workers)));
  p.sums_slot = plan.scratch(static_cast<size_t>(p.chunk * kProductColumns) * sizeof(int32_t) * p.workers);
  return p;
}

struct ProductRows {
  const int16_t* at;
  int64_t stride;
};

// rows(group, first, count, scratch) gives ProductRows; done(first row, count, first column of all groups', columns, sums)
// takes sums of `columns` a row.
template <class Rows, class Done>
void RunProduct(const Node& n, const ProductPlan& plan, const ProductShape& s, const int16_t* weights,
                const Rows& rows, const Done& done) {
  if (s.rows == 0 || s.columns == 0) return;
  const int64_t blocks = (s.columns + kProductColumns - 1) / kProductColumns,
                chunks = (s.rows + plan.chunk - 1) / plan.chunk;
  int16_t* made = plan.copied ? n.scratch<int16_t>(plan.rows_slot) : nullptr;
  int32_t* all_sums = n.scratch<int32_t>(plan.sums_slot);
  const auto run = [&](size_t begin, size_t end, uint32_t worker) {
    int16_t* scratch = made ? made + worker * plan.chunk * s.depth : nullptr;
    int32_t* sums = all_sums + worker * plan.chunk * kProductColumns;
    for (int64_t task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
      const int64_t group = task / chunks / blocks, block = task / chunks % blocks;
      const int64_t first = task % chunks * plan.chunk, column = block * kProductColumns;
      const int64_t count = std::min(plan.chunk, s.rows - first),
                    columns = std::min(kProductColumns, s.columns - column);
      const ProductRows a = rows(group, first, count, scratch);
      const int64_t channel = group * s.columns + column;
      Multiply(IntegerProduct{a.at, a.stride, weights + channel * s.depth, s.depth, sums, columns, count,
                              columns, s.depth});
      done(first, count, channel, columns, sums);
    }
  };
  const size_t tasks = static_cast<size_t>(s.groups * blocks * chunks);
  if (thread_count(n.host()) > plan.workers) return run(0, tasks, 0);
  parallel_for(n.host(), tasks, Grain(plan.chunk * kProductColumns * s.depth / 16), run);
}

}  // namespace fusebox::cpu
