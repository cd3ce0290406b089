// SPDX-License-Identifier: Apache-2.0
#define FUSEBOX_FLOATS_ONLY
#include "plugins/math/simd/functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/math/simd/functions.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE FloatVector Elu(FloatVector x) {
  FloatVector scale;
  FloatVector p;
  SplitExp(fd, Clamp(fd, x, hn::Set(fd, -87.0f), hn::Zero(fd)), scale, p);
  const FloatVector below = hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(fd, 1.0f)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(fd)), below, x);
}

// Unlike Sigmoid, subnormal where exp(x) is, and 0 where that is.
HWY_INLINE FloatVector Logistic(FloatVector x) {
  const FloatVector e = Exp(fd, hn::Neg(hn::Abs(x)));
  const FloatVector above = hn::Div(hn::Set(fd, 1.0f), hn::Add(hn::Set(fd, 1.0f), e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(fd)), hn::Mul(e, above), above);
}

HWY_INLINE FloatVector Gelu(FloatVector x) {
  const FloatVector cube = hn::Mul(hn::Mul(x, x), x);
  const FloatVector inner = hn::Mul(hn::Set(fd, 0.797884561f), hn::MulAdd(hn::Set(fd, 0.044715f), cube, x));
  const FloatVector half = hn::Mul(hn::Set(fd, 0.5f), x);
  return hn::MulAdd(half, Tanh(fd, inner), half);
}

template <class F>
HWY_INLINE void ForVectors(const float* x, float* y, size_t count, const F& f) {
  size_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) hn::StoreU(f(hn::LoadU(fd, x + i)), fd, y + i);
  if (i < count) hn::StoreN(f(hn::LoadN(fd, x + i, count - i)), fd, y + i, count - i);
}

void MapAll(Function function, const float* x, float* y, size_t count) {
  const auto map = [&](const auto& f) HWY_ATTR { ForVectors(x, y, count, f); };
  switch (function) {
    case Function::kExp: return map([](FloatVector v) HWY_ATTR { return Exp(fd, v); });
    case Function::kElu: return map([](FloatVector v) HWY_ATTR { return Elu(v); });
    case Function::kTanh: return map([](FloatVector v) HWY_ATTR { return Tanh(fd, v); });
    case Function::kSigmoid: return map([](FloatVector v) HWY_ATTR { return Logistic(v); });
    case Function::kSilu: return map([](FloatVector v) HWY_ATTR { return hn::Mul(v, Logistic(v)); });
    case Function::kGelu: return map([](FloatVector v) HWY_ATTR { return Gelu(v); });
  }
}

const FunctionKernels& CodeOfFunctions() {
  static constexpr FunctionKernels code{MapAll};
  return code;
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::math {

std::vector<const FunctionKernels*> AllFunctionKernels() {
  return FUSEBOX_SIMD_TABLES(FunctionKernels, CodeOfFunctions);
}

void Map(Function f, const float* x, float* y, size_t count) { FunctionChoice::Best().map(f, x, y, count); }

}  // namespace fusebox::math
#endif
