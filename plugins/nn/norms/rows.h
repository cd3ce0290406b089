// SPDX-License-Identifier: Apache-2.0
// The shared parts of norms: sums over a row, loops over rows, and checks of operands and bodies.
#pragma once

#include <array>
#include <cstddef>

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

#include "plugins/math/costs.h"

namespace fusebox::nn {

using namespace sdk;

// The sum of f(x[i]). Independent partial sums, so that it is vectorized and rounds less than one running
// sum.
template <class F>
float SumOf(const float* x, size_t count, const F& f) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += f(x[i + lane]);
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += f(x[i]);
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

inline float SumOfSquares(const float* x, size_t count) {
  return SumOf(x, count, [](float v) { return v * v; });
}

// f(input row, output row, size) for the rows along the last dimension, on the threads of the session.
template <class F>
void ForRows(const Node& n, const F& f) {
  const Tensor x = n.in(0);
  const auto size = static_cast<size_t>(x.dim(-1));
  const size_t rows = size == 0 ? 0 : static_cast<size_t>(x.count()) / size;
  parallel_for(n.host(), rows, math::Grain(static_cast<int64_t>(size)),
               [&](size_t begin, size_t end, uint32_t) {
                 for (size_t row = begin; row < end; ++row)
                   f(x.data<const float>() + row * size, n.out(0).data<float>() + row * size, size);
               });
}

// Declines unless operand 0 is f32 of known rank 1 or more.
template <class Checked>
void RequireRows(const Checked& c) {
  c.operand(0, FBX_F32);
  c.require(c.in(0).rank() >= 1, "RANK", "is a scalar, or has an unknown rank", "operand 0");
}

// Declines unless operand i is f32 with one element per feature.
template <class Checked>
void RequirePerFeature(const Checked& c, uint32_t i) {
  const std::string subject = "operand " + std::to_string(i);
  c.operand(i, FBX_F32, 1);
  c.require(c.in(i).dim(0) == c.in(0).dim(-1) && c.in(i).dim(0) >= 0, "SHAPE",
            "does not have the size of the last dimension of operand 0", subject);
}

// Declines if the body holds weights that are no operands (litert-torch:
// RMSNorm(with_scale=True)).
inline void RequireNoOwnWeights(const Site& s) {
  const auto body = s.body();
  for (fbx_value v = 0; body && v < body->value_count(); ++v) {
    const Tensor t = body->value(v);
    if (!t.is_const() || t.dtype() != FBX_F32 || !t.has_value() || t.count() < 2) continue;
    for (const float value : t.values<const float>())
      s.require(value == 1, "BODY", "the body multiplies by weights that are no operands");
  }
}

}  // namespace fusebox::nn
