// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements.
#pragma once

#include <cstddef>
#include <span>

namespace fusebox::cli {

// Statistics of times in the order of measurement. Percentiles are interpolated between neighbors.
struct Summary {
  size_t count = 0;
  double first = 0, last = 0, least = 0, most = 0, mean = 0, deviation = 0;
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;
};
Summary Summarize(std::span<const double> times);  // of at least one
double Median(std::span<const double> values);     // likewise

// An estimate and its confidence interval.
struct Ratio {
  double value = 1, low = 1, high = 1;
};
// From the ratios of two contestants in at least 8 processes: the Hodges-Lehmann estimate (the median of the
// means of two, here geometric ones) and the exact 99 % interval of Wilcoxon's signed ranks. It holds for any
// distribution in which two equal contestants differ to either side alike.
Ratio Estimate(std::span<const double> ratios);

}  // namespace fusebox::cli
