// SPDX-License-Identifier: Apache-2.0
// z = f(x, y) over two broadcast operands, with few and long inner loops.
#pragma once

#include <array>

#include "plugins/cpu/shape.h"
#include "plugins/cpu/simd.h"

namespace fusebox::cpu {

// Two broadcast operands as outer steps and an inner run, in which each operand advances by one or stays.
struct BroadcastPlan {
  Shape outer;                         // dims of the outer index space
  std::array<Shape, 2> strides;        // of each operand, in elements
  int64_t outer_count = 1, inner = 1;  // number of outer steps; elements per step
  std::array<int64_t, 2> step{};       // step of each operand in the inner run: 0 or 1
};

// Both shapes must be known. Adjacent dims with the same behavior of both operands are merged first.
inline BroadcastPlan PlanBroadcast(const Shape& x, const Shape& y) {
  const Shape out = Broadcast(x, y);
  const std::array<Shape, 2> strides = {BroadcastStrides(x, out), BroadcastStrides(y, out)};
  Shape dims;
  std::array<Shape, 2> merged;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == 1) continue;
    const int last = dims.rank() - 1;
    const bool continues =
        last >= 0 && merged[0][last] == strides[0][i] * out[i] && merged[1][last] == strides[1][i] * out[i];
    if (continues) {
      dims[last] *= out[i];
      for (size_t k = 0; k < 2; ++k) merged[k][last] = strides[k][i];
    } else {
      dims.push_back(out[i]);
      for (size_t k = 0; k < 2; ++k) merged[k].push_back(strides[k][i]);
    }
  }
  BroadcastPlan plan;
  for (int i = 0; i + 1 < dims.rank(); ++i) {
    plan.outer.push_back(dims[i]);
    for (size_t k = 0; k < 2; ++k) plan.strides[k].push_back(merged[k][i]);
  }
  plan.outer_count = Count(plan.outer);
  if (dims.rank() > 0) {
    plan.inner = dims[dims.rank() - 1];
    for (size_t k = 0; k < 2; ++k) plan.step[k] = merged[k][dims.rank() - 1];
  }
  return plan;
}

// The inner run; separate loops, so that each vectorizes.
template <class T, class R, class F>
FUSEBOX_INLINE inline void RunInner(const T* x, int64_t x_step, const T* y, int64_t y_step, R* z,
                                    int64_t count, const F& f) {
  if (x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
  } else if (x_step == 1) {
    const T b = *y;
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], b);
  } else {
    const T a = *x;
    for (int64_t i = 0; i < count; ++i) z[i] = f(a, y[i * y_step]);
  }
}

// z may be the memory of an operand that is not broadcast.
template <class T, class R, class F>
void RunBroadcast(const fbx_host* host, const BroadcastPlan& plan, const T* x, const T* y, R* z, const F& f) {
  if (plan.outer_count == 0 || plan.inner == 0) return;
  if (plan.outer_count == 1) {
    return parallel_for(
        host, static_cast<size_t>(plan.inner), 16384, [&](size_t begin, size_t end, uint32_t) {
          const int64_t at = static_cast<int64_t>(begin), count = static_cast<int64_t>(end - begin);
          Vectorized([&]() FUSEBOX_INLINE {
            RunInner(x + at * plan.step[0], plan.step[0], y + at * plan.step[1], plan.step[1], z + at, count,
                     f);
          });
        });
  }
  parallel_for(host, static_cast<size_t>(plan.outer_count), Grain(plan.inner),
               [&](size_t begin, size_t end, uint32_t) {
                 Walk<2> walk(plan.outer, plan.strides);
                 walk.Seek(static_cast<int64_t>(begin));
                 Vectorized([&]() FUSEBOX_INLINE {
                   for (size_t i = begin; i < end; ++i, walk.Next()) {
                     RunInner(x + walk.offset(0), plan.step[0], y + walk.offset(1), plan.step[1],
                              z + static_cast<int64_t>(i) * plan.inner, plan.inner, f);
                   }
                 });
               });
}

}  // namespace fusebox::cpu
