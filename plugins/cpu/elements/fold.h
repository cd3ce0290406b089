// SPDX-License-Identifier: Apache-2.0
// The loops of a reduction. They are there once for each folding and type, whatever the results are.
//
// A folding Op has Start<Total>(), the total of nothing, and Join(total, total).
#pragma once

#include <algorithm>
#include <type_traits>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/elements/reduce_plan.h"

namespace fusebox::cpu {

// The total of one value.
template <class Total>
struct Loaded {
  template <class T>
  FUSEBOX_INLINE Total operator()(T x) const {
    return static_cast<Total>(x);
  }
};

// Computes results from totals.
template <class T, class Total>
struct Finishing {
  const void* context;
  void (*call)(const void* context, const Total* totals, int64_t count, T* out);

  // `f`: one result from one total. It must outlive the result.
  template <class F>
  static Finishing By(const F& f) {
    return {&f, [](const void* context, const Total* totals, int64_t count, T* out) {
              const F& finish = *static_cast<const F*>(context);
              for (int64_t i = 0; i < count; ++i) out[i] = finish(totals[i]);
            }};
  }
};

template <class Op>
struct Fold {
  // Types whose loops are vectorized.
  template <class T>
  static constexpr bool kUsual = std::is_same_v<T, float> || sizeof(T) == 1 || std::is_same_v<T, int32_t>;
  static constexpr int64_t kBlock = 256;  // totals on the stack

  template <class T, class Total, class L>
  static void Run(const Node& n, const ReducePlan& plan, const L& load, const Finishing<T, Total>& finish) {
    const T* in = n.in(0).data<const T>();
    T* out = n.out(0).data<T>();
    if (n.out(0).count() == 0) return;
    ParallelFor(n.host(), static_cast<size_t>(plan.kept_count), Grain(plan.folded_count * plan.inner),
                [&](size_t begin, size_t end, uint32_t) {
                  const auto rows = [&]() FUSEBOX_INLINE {
                    Rows<T, Total>(plan, in, out, static_cast<int64_t>(begin), static_cast<int64_t>(end),
                                   load, finish);
                  };
                  if constexpr (kUsual<T>) rows();
                  else Compactly(rows);
                });
  }

 private:
  template <class T, class Total, class L>
  FUSEBOX_INLINE static void Rows(const ReducePlan& plan, const T* in, T* out, int64_t begin, int64_t end,
                                  const L& load, const Finishing<T, Total>& finish) {
    Total totals[kBlock];
    Walk<1> kept(plan.kept, {plan.kept_strides});
    kept.Seek(begin);
    int64_t full = 0;
    for (int64_t i = begin; i < end; ++i, kept.Next()) {
      const T* const from = in + kept.offset(0);
      if (plan.inner_folded) {
        totals[full++] = FoldRuns<T, Total>(plan, from, load);
        if (full < kBlock && i + 1 < end) continue;
        finish.call(finish.context, totals, full, out + i + 1 - full);
        full = 0;
        continue;
      }
      for (int64_t first = 0; first < plan.inner; first += kBlock) {
        const int64_t count = std::min(kBlock, plan.inner - first);
        FoldColumns(plan, from + first, count, totals, load);
        finish.call(finish.context, totals, count, out + i * plan.inner + first);
      }
    }
  }

  // Runs of adjacent elements, in eight partial results.
  template <class T, class Total, class L>
  FUSEBOX_INLINE static Total FoldRuns(const ReducePlan& plan, const T* in, const L& load) {
    constexpr int64_t kParts = 8;
    Total parts[kParts];
    parts[0] = Op::template Start<Total>();
    if (plan.folded_count == 0) return parts[0];
    if (plan.folded_count == 1 && plan.inner < kParts) {
      for (int64_t i = 0; i < plan.inner; ++i) parts[0] = Op::Join(parts[0], load(in[i]));
      return parts[0];
    }
    std::fill_n(parts, kParts, parts[0]);
    Walk<1> folded(plan.folded, {plan.folded_strides});
    folded.Seek(0);
    for (int64_t f = 0; f < plan.folded_count; ++f, folded.Next()) {
      const T* run = in + folded.offset(0);
      int64_t i = 0;
      for (; i + kParts <= plan.inner; i += kParts) {
        for (int64_t p = 0; p < kParts; ++p) parts[p] = Op::Join(parts[p], load(run[i + p]));
      }
      for (int64_t p = 0; i < plan.inner; ++i, ++p) parts[p] = Op::Join(parts[p], load(run[i]));
    }
    for (int64_t width = kParts / 2; width > 0; width /= 2) {
      for (int64_t p = 0; p < width; ++p) parts[p] = Op::Join(parts[p], parts[p + width]);
    }
    return parts[0];
  }

  template <class T, class Total, class L>
  FUSEBOX_INLINE static void FoldColumns(const ReducePlan& plan, const T* in, int64_t count, Total* totals,
                                         const L& load) {
    std::fill_n(totals, count, Op::template Start<Total>());
    if (plan.folded_count == 0) return;
    Walk<1> folded(plan.folded, {plan.folded_strides});
    folded.Seek(0);
    const auto fold = [&]() FUSEBOX_INLINE {
      for (int64_t f = 0; f < plan.folded_count; ++f, folded.Next()) {
        const T* row = in + folded.offset(0);
#pragma GCC ivdep
        for (int64_t c = 0; c < count; ++c) totals[c] = Op::Join(totals[c], load(row[c]));
      }
    };
    if constexpr (kUsual<T>) Vectorized(fold);
    else fold();
  }
};

}  // namespace fusebox::cpu
