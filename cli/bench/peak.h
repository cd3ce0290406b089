// SPDX-License-Identifier: Apache-2.0
// Measures the peak speed of this machine. Each measurement runs on one thread for some hundredths of a
// second.
#pragma once

#include <cstddef>

namespace fusebox::cli {

// Returns f32 operations per second of multiply-adds in registers, which count as two operations.
double MeasureFlops();
// Returns the same for products of 8-bit integers, summed in 32 bits.
double MeasureByteOps();
// Returns bytes per second of repeated reads of `bytes`.
double MeasureReadBandwidth(size_t bytes);

struct Peak {
  double flops = 0;
  double cached = 0;  // bandwidth of half a megabyte
  double memory = 0;  // bandwidth of 128 MB
};
Peak MeasurePeak();

// The least time, in seconds, in which that peak permits this work (the roofline model: Williams, Waterman,
// Patterson, 2009). `flops` are f32 operations.
double LeastSeconds(const Peak&, double flops, double bytes);

}  // namespace fusebox::cli
