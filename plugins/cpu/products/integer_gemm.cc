// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/integer_gemm.h"

#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {
namespace {

// Number of products that fit into 31 bits: 255 * 255 each, or 32768 * 255 for 64-bit sums.
constexpr int64_t kByteDepth = 8192;
constexpr int64_t kMixedDepth = 256;

FUSEBOX_INLINE inline int32_t Plus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
FUSEBOX_INLINE inline int64_t Plus(int64_t a, int64_t b) { return a + b; }

// One row of a times kColumns rows of b, summed in a Part. Named variables let the compiler detect four
// reductions.
template <int kColumns, class Part, class Sum>
FUSEBOX_INLINE inline void Tile(const IntegerProduct<Sum>& x, const int16_t* a, const int16_t* b, int64_t k,
                                Sum* c) {
  Part s0 = 0;
  Part s1 = 0;
  Part s2 = 0;
  Part s3 = 0;
  const int16_t* b1 = kColumns > 1 ? b + x.ldb : b;
  const int16_t* b2 = kColumns > 1 ? b1 + x.ldb : b;
  const int16_t* b3 = kColumns > 1 ? b2 + x.ldb : b;
  for (int64_t p = 0; p < k; ++p) {
    s0 += a[p] * b[p];
    if constexpr (kColumns > 1) {
      s1 += a[p] * b1[p];
      s2 += a[p] * b2[p];
      s3 += a[p] * b3[p];
    }
  }
  const Part sums[] = {s0, s1, s2, s3};
  for (int j = 0; j < kColumns; ++j) c[j] = Plus(c[j], Sum{sums[j]});
}

template <class Part, class Sum>
void Run(const IntegerProduct<Sum>& x, int64_t depth) {
  for (int64_t i = 0; i < x.m; ++i) std::fill_n(x.c + i * x.ldc, x.n, Sum{0});
  Vectorized([&]() FUSEBOX_INLINE {
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t k = std::min(depth, x.k - p);
      int64_t j = 0;
      for (; j + 4 <= x.n; j += 4) {
        for (int64_t i = 0; i < x.m; ++i)
          Tile<4, Part>(x, x.a + i * x.lda + p, x.b + j * x.ldb + p, k, x.c + i * x.ldc + j);
      }
      for (; j < x.n; ++j) {
        for (int64_t i = 0; i < x.m; ++i)
          Tile<1, Part>(x, x.a + i * x.lda + p, x.b + j * x.ldb + p, k, x.c + i * x.ldc + j);
      }
    }
  });
}

}  // namespace

ProductPlan PlanProduct(Plan& plan, const ProductShape& s, bool copied, bool wide) {
  ProductPlan p;
  p.workers = std::max(1u, plan.threads());
  const int64_t row = std::max<int64_t>(1, Product(s.k, sizeof(int16_t)));
  p.chunk = std::clamp<int64_t>(math::kRowsBytes / row / 4 * 4, 4, 64);
  p.copied = copied;
  p.wide = wide;
  if (copied) p.rows_slot = plan.scratch(static_cast<size_t>(Product(Product(p.chunk, row), p.workers)));
  p.sums_slot = plan.scratch(static_cast<size_t>(p.chunk * kProductColumns) * sizeof(int64_t) * p.workers);
  return p;
}

void Multiply(const IntegerProduct<int32_t>& x) { Run<int32_t>(x, kByteDepth); }

void Multiply(const IntegerProduct<int64_t>& x) {
  if (x.wide) Run<int64_t>(x, kByteDepth);
  else Run<int32_t>(x, kMixedDepth);
}

}  // namespace fusebox::cpu
