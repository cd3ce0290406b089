// SPDX-License-Identifier: Apache-2.0
// What this machine reaches at most, measured.
#pragma once

#include <cstddef>

namespace fusebox::cli {

// On one thread, in some hundredths of a second: f32 operations per second, of multiply-adds in registers,
// two each; and bytes per second, of repeated reads of `bytes`.
double MeasureFlops();
// The same for products of 8-bit integers, summed in 32 bits.
double MeasureByteOps();
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
