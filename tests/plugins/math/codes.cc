// SPDX-License-Identifier: Apache-2.0
#define HWY_WANT_AVX3_DL
#include "tests/plugins/math/codes.h"

#include <algorithm>

#include "plugins/math/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/plugins/math/codes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/gemm/bytes-inl.h"
#include "plugins/math/simd/fixed_point-inl.h"
#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace {

auto StoreAt(const ByteTask& task, int32_t* sums) {
  return [&task, sums](size_t row, size_t first, size_t outputs, const int32_t* from) {
    std::copy_n(from, outputs, sums + row * task.layout.padded() + first);
  };
}

template <class Dot>
void MultiplyAllBytes(const ByteTask& task, int32_t* sums) {
  const auto store = StoreAt(task, sums);
  MultiplyBytes<Dot>(task, 0, task.layout.groups(), ByRow(store));
}

template <class Dot>
void MultiplyAllHalves(const ByteTask& task, int32_t* sums) {
  const auto store = StoreAt(task, sums);
  MultiplyInt4<Dot>(task, 0, task.layout.groups(), ByRow(store));
}

void TimesAll(FixedPoint by, int32_t* x, size_t count) {
  constexpr size_t kLanes = HWY_MAX_LANES_D(ByteSumTag);
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t left = std::min(kLanes, count - i);
    hn::StoreN(Times(by, hn::LoadN(byte_sums, x + i, left)), byte_sums, x + i, left);
  }
}

template <class F>
HWY_INLINE void ForVectors(float* x, size_t count, const F& f) {
  for (size_t i = 0; i < count; i += kFloatLanes)
    StoreSome(f(LoadSome(x + i, count - i), i), x + i, count - i);
}

void Exp2All(float* x, size_t count) {
  ForVectors(x, count, [](FloatVector v, size_t) HWY_ATTR { return Exp2(v); });
}

void SigmoidAll(float* x, size_t count) {
  ForVectors(x, count, [](FloatVector v, size_t) HWY_ATTR { return Sigmoid(fd, v); });
}

void TanhAll(float* x, size_t count) {
  ForVectors(x, count, [](FloatVector v, size_t) HWY_ATTR { return Tanh(fd, v); });
}

void GatedTanhAll(const float* gate, float* x, size_t count) {
  ForVectors(x, count, [=](FloatVector v, size_t i) HWY_ATTR {
    return GatedTanh(fd, LoadSome(gate + i, count - i), v);
  });
}

template <class Dot>
constexpr MathCode kTable{.lanes = kByteLanes,
                          .unit = Dot::kUnit,
                          .signs = {Dot::kUnsignedRows},
                          .multiply_bytes = MultiplyAllBytes<Dot>,
                          .multiply_halves = MultiplyAllHalves<Dot>,
                          .times = TimesAll,
                          .exp2 = Exp2All,
                          .sigmoid = SigmoidAll,
                          .tanh = TanhAll,
                          .gated_tanh = GatedTanhAll};

}  // namespace

const MathCode& TestCode() { return kTable<ByteDot>; }
#if FUSEBOX_BYTE_EXTENSION
const MathCode& TestCodeExtended() { return kTable<ExtendedByteDot>; }
#endif

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::math {

std::vector<const MathCode*> MathCodes() { return FUSEBOX_SIMD_TABLES(MathCode, TestCode); }

}  // namespace fusebox::math
#endif
