// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/cost/rates.h"

#include "plugins/math/simd/cpu.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace fusebox::math {
namespace {

struct Row {
  Isa isa;
  Rates kernels, xnnpack;
};

constexpr Row Measured() {
  Row row{Isa::kAvx512Vnni, {}, {}};
#define RATE(item, of_kernels, of_xnnpack) \
  row.kernels[item] = of_kernels;          \
  row.xnnpack[item] = of_xnnpack;
#include "plugins/math/cost/rates.def"
#undef RATE
  return row;
}
constexpr Row kMeasured = Measured();

// Rates on vectors half as long (AVX2), or without dot products of bytes: not measured, but derived.
constexpr Row Derived(Isa isa, const Row& measured, double vectors, double byte_products) {
  Row row = measured;
  row.isa = isa;
  for (Rates* const rates : {&row.kernels, &row.xnnpack}) {
    for (const Item item : {kF32Product, kF32Tap, kF32FarTap, kI8Tap, kI8FarTap, kU8Product, kI8Result,
                            kF32Element, kI8Element, kFunction})
      (*rates)[item] *= vectors;
    (*rates)[kI8Product] *= byte_products;
  }
  return row;
}
constexpr Row kAvx512Row = Derived(Isa::kAvx512, kMeasured, 1, 2);
constexpr Row kAvx2VnniRow = Derived(Isa::kAvx2Vnni, kMeasured, 2, 2);
constexpr Row kAvx2Row = Derived(Isa::kAvx2, kMeasured, 2, 4);

const Row* BestRow() {
  static const Row* const best = []() -> const Row* {
    for (const Row* const row : {&kMeasured, &kAvx512Row, &kAvx2VnniRow, &kAvx2Row})
      if (row->isa == BestIsa()) return row;
    return nullptr;
  }();
  return best;
}

}  // namespace

Isa BestIsa() {
#if defined(__aarch64__)
  constexpr unsigned long kDotProducts = 1UL << 20;
  return (getauxval(AT_HWCAP) & kDotProducts) != 0 ? Isa::kNeonDot : Isa::kNeon;
#elif defined(__x86_64__)
  if (FUSEBOX_CPU_HAS(AVX512BW) && FUSEBOX_CPU_HAS(AVX512VL))
    return FUSEBOX_CPU_HAS(AVX512_VNNI) ? Isa::kAvx512Vnni : Isa::kAvx512;
  if (FUSEBOX_CPU_HAS(AVX2) && FUSEBOX_CPU_HAS(FMA))
    return FUSEBOX_CPU_HAS(AVX_VNNI) ? Isa::kAvx2Vnni : Isa::kAvx2;
  return Isa::kSse4;
#else
  return Isa::kSse4;
#endif
}

const Rates* KernelRates() { return BestRow() == nullptr ? nullptr : &BestRow()->kernels; }
const Rates* XnnpackRates() { return BestRow() == nullptr ? nullptr : &BestRow()->xnnpack; }

}  // namespace fusebox::math
