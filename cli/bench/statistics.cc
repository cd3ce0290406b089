// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fusebox::cli {
namespace {

constexpr double kOutside = 0.005;  // on each side of the interval

double Quantile(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> Sorted(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  std::ranges::sort(out);
  return out;
}

// The least sums of ranks with all `count` signs at random that together have at most the chance kOutside.
size_t CountOutside(size_t count) {
  std::vector<double> chance = {1};  // by sum
  for (size_t rank = 1; rank <= count; ++rank) {
    std::vector<double> next(chance.size() + rank);
    for (size_t sum = 0; sum < chance.size(); ++sum) {
      next[sum] += chance[sum] / 2;
      next[sum + rank] += chance[sum] / 2;
    }
    chance = std::move(next);
  }
  size_t out = 0;
  for (double sum = chance[0]; sum <= kOutside; sum += chance[++out]) continue;
  return out;
}

}  // namespace

double Median(std::span<const double> values) { return Quantile(Sorted(values), 0.5); }

Summary Summarize(std::span<const double> times) {
  const std::vector<double> sorted = Sorted(times);
  Summary out{.count = times.size(),
              .first = times.front(),
              .last = times.back(),
              .least = sorted.front(),
              .most = sorted.back(),
              .p50 = Quantile(sorted, 0.5),
              .p90 = Quantile(sorted, 0.9),
              .p99 = Quantile(sorted, 0.99),
              .p999 = Quantile(sorted, 0.999)};
  for (const double t : times) out.mean += t / static_cast<double>(times.size());
  for (const double t : times)
    out.deviation += (t - out.mean) * (t - out.mean) / static_cast<double>(times.size());
  out.deviation = std::sqrt(out.deviation);
  return out;
}

Ratio Estimate(std::span<const double> ratios) {
  std::vector<double> means;
  for (size_t i = 0; i < ratios.size(); ++i)
    for (size_t k = 0; k <= i; ++k) means.push_back(std::sqrt(ratios[i] * ratios[k]));
  std::ranges::sort(means);
  const size_t outside = CountOutside(ratios.size());
  return {Quantile(means, 0.5), means[outside - 1], means[means.size() - outside]};
}

}  // namespace fusebox::cli
