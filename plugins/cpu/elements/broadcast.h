// SPDX-License-Identifier: Apache-2.0
// z = f(x, y) over two broadcast operands, with few and long inner loops.
#pragma once

#include <array>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {

// Two broadcast operands as outer steps and an inner run, in which each operand advances by one or stays.
struct BroadcastPlan {
  Shape outer;                    // dims of the outer index space
  std::array<Shape, 2> strides;   // of each operand, in elements
  int64_t outer_count = 1;        // outer steps
  int64_t inner = 1;              // elements of a step
  std::array<int64_t, 2> step{};  // step of each operand in the inner run: 0 or 1
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

// Inner runs one after the other in z: run r of operand k begins r * row[k] elements after the first.
struct BroadcastRuns {
  std::array<const void*, 2> in;
  void* z;
  std::array<int64_t, 2> row, step;
  int64_t rows, count;
};
// The loops over the runs, in one place for all shapes: in and z are of the loop's types, f is its function.
using InnerLoop = void (*)(const void* f, const BroadcastRuns& runs);
struct BroadcastOperand {
  const void* data;
  size_t width;  // bytes of an element
};
// Walks the outer steps of the plan on the host's threads.
void WalkBroadcast(const fbx_host* host, const BroadcastPlan& plan, std::array<BroadcastOperand, 2> in,
                   void* z, size_t z_width, InnerLoop loop, const void* f);

// Separate loops, so that each vectorizes. Iterations are independent: z is an operand itself or apart from
// both.
template <class T, class R, class F>
FUSEBOX_INLINE inline void RunInner(const T* x, int64_t x_step, const T* y, int64_t y_step, R* z,
                                    int64_t count, const F& f) {
  if (x_step == 1 && y_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
  } else if (x_step == 1) {
    const T b = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], b);
  } else if (y_step == 1) {
    const T a = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) z[i] = f(a, y[i]);
  } else {
    std::fill_n(z, count, f(*x, *y));
  }
}

// z may be the memory of an operand that is not broadcast.
template <class T, class R, class F>
void RunBroadcast(const fbx_host* host, const BroadcastPlan& plan, const T* x, const T* y, R* z, const F& f) {
  WalkBroadcast(
      host, plan, {{{x, sizeof(T)}, {y, sizeof(T)}}}, z, sizeof(R),
      [](const void* f, const BroadcastRuns& runs) {
        VectorizedFor<T>([&]() FUSEBOX_INLINE {
          const T* x = static_cast<const T*>(runs.in[0]);
          const T* y = static_cast<const T*>(runs.in[1]);
          R* z = static_cast<R*>(runs.z);
          const int64_t count = runs.count;
          for (int64_t r = runs.rows; r > 0; --r, x += runs.row[0], y += runs.row[1], z += count)
            RunInner(x, runs.step[0], y, runs.step[1], z, count, *static_cast<const F*>(f));
        });
      },
      &f);
}

// The same where f does not vectorize: a call, an integer division, a loop.
template <class T, class R, class F>
void RunBroadcastPlainly(const fbx_host* host, const BroadcastPlan& plan, const T* x, const T* y, R* z,
                         const F& f) {
  WalkBroadcast(
      host, plan, {{{x, sizeof(T)}, {y, sizeof(T)}}}, z, sizeof(R),
      [](const void* f, const BroadcastRuns& runs) {
        const T* x = static_cast<const T*>(runs.in[0]);
        const T* y = static_cast<const T*>(runs.in[1]);
        R* z = static_cast<R*>(runs.z);
        for (int64_t r = 0; r < runs.rows; ++r, x += runs.row[0], y += runs.row[1])
          for (int64_t i = 0; i < runs.count; ++i)
            *z++ = (*static_cast<const F*>(f))(x[i * runs.step[0]], y[i * runs.step[1]]);
      },
      &f);
}

}  // namespace fusebox::cpu
