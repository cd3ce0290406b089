// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/rope/rope.h"

#include "plugins/math/costs.h"
#include "plugins/nn/rope/turn.h"

namespace fusebox::nn {
namespace {

constexpr uint32_t kRotated = 0;
constexpr uint32_t kPositions = 1;
constexpr uint32_t kRates = 2;

size_t HalfOf(const Node& n) { return static_cast<size_t>(n.in(kRates).dim(0)); }

double PositionAt(Tensor positions, size_t t) {
  return positions.dtype() == FBX_I64 ? static_cast<double>(positions.data<const int64_t>()[t])
                                      : static_cast<double>(positions.data<const int32_t>()[t]);
}

}  // namespace

void Rope::supports(const Node& n) {
  n.arity(3, 1);
  n.operand(kRotated, FBX_F32);
  n.operand(kRates, FBX_F32, 1);
  const Tensor x = n.in(kRotated);
  RequireRotatable(n);
  n.require(n.in(kRates).dim(0) > 0 && x.dim(-1) == 2 * n.in(kRates).dim(0), "SHAPE",
            "does not have one element per pair of features of operand 0", "operand 2");
  const int64_t axis = n.attrs().i64("axis");
  n.require(axis >= 0 && axis < x.rank() - 1, "AXIS", "is no dimension before the last one", "attr axis");
}

Rope::Rope(const Node& n)
    : axis_(static_cast<int>(n.attrs().i64("axis"))), divides_(n.attrs().b("divides", false)) {}

uint32_t Rope::prepare(const Node& n, Plan& plan) const {
  return plan.scratch(plan.threads() * 2 * HalfOf(n) * sizeof(float));
}

void Rope::invoke(const Node& n, uint32_t slot) const {
  const Tensor x = n.in(kRotated);
  const Tensor positions = n.in(kPositions);
  if (positions.dim(-1) != x.dim(axis_) || positions.count() < x.dim(axis_))
    throw Error{
        FBX_INVALID,
        "does not have one element per position of dimension " + std::to_string(axis_) + " of operand 0",
        "operand 1"};
  size_t before = 1;  // rows of a position: `before` groups of `behind` neighbors
  size_t behind = 1;
  for (int d = 0; d < axis_; ++d) before *= static_cast<size_t>(x.dim(d));
  for (int d = axis_ + 1; d < x.rank() - 1; ++d) behind *= static_cast<size_t>(x.dim(d));
  const auto count = static_cast<size_t>(x.dim(axis_));
  const size_t half = HalfOf(n);
  constexpr size_t kAngleWork = 8;
  const auto work = static_cast<int64_t>((before * behind + kAngleWork) * 2 * half);
  const RopeCode& code = RopeSimd::Best();
  parallel_for(n.host(), count, math::Grain(work), [&](size_t begin, size_t end, uint32_t worker) {
    float* const cosines = n.scratch<float>(slot) + worker * 2 * half;
    float* const sines = cosines + half;
    for (size_t t = begin; t < end; ++t) {
      code.angles(PositionAt(positions, t), n.in(kRates).data<const float>(), divides_, half, cosines, sines);
      for (size_t group = 0; group < before; ++group) {
        const size_t first = (group * count + t) * behind * 2 * half;
        for (size_t at = first; at < first + behind * 2 * half; at += 2 * half)
          code.rotate(x.data<const float>() + at, cosines, sines, half, n.out(0).data<float>() + at);
      }
    }
  });
}

}  // namespace fusebox::nn
