// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#define HWY_WANT_AVX3_DL
#include "plugins/math/simd/targets.h"

#ifndef FUSEBOX_CLI_PEAK_CODE
#define FUSEBOX_CLI_PEAK_CODE
namespace fusebox::cli {
struct PeakCode {
  double (*multiply_add)(size_t rounds, float* sink);  // returns the operations
  double (*multiply_bytes)(size_t rounds, float* sink);
  void (*read_all)(const float* data, size_t count, float* sink);
};
constexpr size_t kCached = 1 << 19;  // bytes that stay in a cache
}  // namespace fusebox::cli
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cli/bench/peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/gemm/bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::cli::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Ten chains of multiply-adds: more than the latency needs. Returns the operations done.
double MultiplyAdd(size_t rounds, float* sink) {
  const hn::CappedTag<float, 16> d;
  const auto m = hn::Set(d, 0.999f);
  auto a = m;
  auto b = m;
  auto c = m;
  auto e = m;
  auto f = m;
  auto g = m;
  auto h = m;
  auto i = m;
  auto j = m;
  auto k = m;
  for (size_t n = 0; n < rounds; ++n) {
    a = hn::MulAdd(a, m, m);
    b = hn::MulAdd(b, m, m);
    c = hn::MulAdd(c, m, m);
    e = hn::MulAdd(e, m, m);
    f = hn::MulAdd(f, m, m);
    g = hn::MulAdd(g, m, m);
    h = hn::MulAdd(h, m, m);
    i = hn::MulAdd(i, m, m);
    j = hn::MulAdd(j, m, m);
    k = hn::MulAdd(k, m, m);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(j, k)));
  *sink = hn::GetLane(sum);
  return 2.0 * 10 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

namespace mm = math::HWY_NAMESPACE;

template <class Dot>
double MultiplyBytes(size_t rounds, float* sink) {
  const auto one = hn::Set(mm::byte_sums, 0x01010101);
  const auto row = Dot::Row(one);
  const auto weights = Dot::Weights(one);
  auto a = one;
  auto b = one;
  auto c = one;
  auto e = one;
  auto f = one;
  auto g = one;
  auto h = one;
  auto i = one;
  auto j = one;
  auto k = one;
  const auto add = [&](mm::ByteSum sum) HWY_ATTR { return Dot::Add(sum, row, weights); };
  for (size_t n = 0; n < rounds; ++n) {
    a = add(a);
    b = add(b);
    c = add(c);
    e = add(e);
    f = add(f);
    g = add(g);
    h = add(h);
    i = add(i);
    j = add(j);
    k = add(k);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(j, k)));
  *sink = static_cast<float>(hn::GetLane(sum));
  return 2.0 * 10 * 4 * static_cast<double>(mm::kByteLanes) * static_cast<double>(rounds);
}

void ReadAll(const float* data, size_t count, float* sink) {
  const hn::CappedTag<float, 16> d;
  const size_t n = hn::Lanes(d);
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  for (size_t i = 0; i + 4 * n <= count; i += 4 * n) {
    a = hn::Add(a, hn::LoadU(d, data + i));
    b = hn::Add(b, hn::LoadU(d, data + i + n));
    c = hn::Add(c, hn::LoadU(d, data + i + 2 * n));
    e = hn::Add(e, hn::LoadU(d, data + i + 3 * n));
  }
  *sink = hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

#if FUSEBOX_BYTE_MATRIX
// The same with matrix instructions: each has eight products for each of four sums.
template <>
FUSEBOX_MATRIX double MultiplyBytes<mm::ExtendedByteDot>(size_t rounds, float* sink) {
  const int8x16_t ones = vdupq_n_s8(1);
  int32x4_t sums[10] = {};
  for (size_t n = 0; n < rounds; ++n) {
#pragma GCC unroll 10
    for (int32x4_t& sum : sums) sum = vmmlaq_s32(sum, ones, ones);
  }
  int32_t total = 0;
  for (const int32x4_t sum : sums) total += vgetq_lane_s32(sum, 0);
  *sink = static_cast<float>(total);
  return 2.0 * 10 * 8 * 4 * static_cast<double>(rounds);
}
#endif

template <class Dot>
constexpr PeakCode kCode{MultiplyAdd, MultiplyBytes<Dot>, ReadAll};

const PeakCode& Code() { return kCode<mm::ByteDot>; }
#if FUSEBOX_BYTE_EXTENSION
const PeakCode& CodeExtended() { return kCode<mm::ExtendedByteDot>; }
#endif

}  // namespace fusebox::cli::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cli {
namespace {

constexpr double kSeconds = 0.03;

const PeakCode& BestCode() {
  static const PeakCode* const best = FUSEBOX_SIMD_TABLES(PeakCode, Code).front();
  return *best;
}

// The best of the runs in kSeconds, in seconds.
template <class F>
double Best(const F& f) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  double best = 1e9;
  for (const auto start = Clock::now(); best == 1e9 || since(start) < kSeconds;) {
    const auto begin = Clock::now();
    f();
    best = std::min(best, since(begin));
  }
  return best;
}

volatile float sink_of_results;

double MeasureOps(double (*multiply)(size_t rounds, float* sink)) {
  float sink = 0;
  double operations = 0;
  const double seconds = Best([&] { operations = multiply(20000, &sink); });
  sink_of_results = sink;
  return operations / seconds;
}

}  // namespace

double MeasureFlops() { return MeasureOps(BestCode().multiply_add); }
double MeasureByteOps() { return MeasureOps(BestCode().multiply_bytes); }

double MeasureReadBandwidth(size_t bytes) {
  const std::vector<float> data(bytes / 4, 1.0f);
  const size_t passes = std::max<size_t>(1, (size_t{1} << 20) / bytes);
  float sink = 0;
  const double seconds = Best([&] {
    for (size_t pass = 0; pass < passes; ++pass) BestCode().read_all(data.data(), data.size(), &sink);
  });
  sink_of_results = sink;
  return static_cast<double>(bytes * passes) / seconds;
}

Peak MeasurePeak() {
  return {MeasureFlops(), MeasureReadBandwidth(kCached), MeasureReadBandwidth(128 << 20)};
}

double LeastSeconds(const Peak& peak, double flops, double bytes) {
  return std::max(flops / peak.flops, bytes / (bytes > kCached ? peak.memory : peak.cached));
}

}  // namespace fusebox::cli
#endif
