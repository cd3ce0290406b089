// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements.
#pragma once

#include <cstddef>
#include <span>

namespace fusebox::cli {

// Statistics of times in the order of measurement. Percentiles are interpolated between neighbors.
struct Summary {
  size_t count = 0;
  double first = 0;
  double last = 0;
  double least = 0;
  double most = 0;
  double mean = 0;
  double deviation = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
};
Summary Summarize(std::span<const double> times);  // of at least one
double Median(std::span<const double> values);     // likewise

// An estimate and its confidence interval.
struct Ratio {
  double value = 1;
  double low = 1;
  double high = 1;
};
// From the ratios of two contestants in at least 8 processes: the Hodges-Lehmann estimate (the median of the
// means of two, here geometric ones) and the exact 99 % interval of Wilcoxon's signed ranks. It holds for any
// distribution in which two equal contestants differ to either side alike.
Ratio Estimate(std::span<const double> ratios);

}  // namespace fusebox::cli
