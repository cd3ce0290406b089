// SPDX-License-Identifier: Apache-2.0
// How products of few columns are defined, because XNNPACK computes many at once.
#pragma once

#include <cstdint>

namespace fusebox::xnnpack {

// Returns the columns that XNNPACK's f32 products compute at once, or 0 if fewer columns lose little, or if
// that is not known.
int64_t KernelColumns();

// XNNPACK computes a product for each pixel, of as many columns as its kernel has. If a convolution of floats
// has fewer results, one product computes several adjacent pixels of a row, with a filter that is as many
// steps wider. Returns their number: the largest that divides the row, or 1 if that saves little.
int64_t PixelsAtOnce(int64_t results, int64_t row, int64_t filter_width, int64_t stride);

// Returns whether XNNPACK computes a convolution of one pixel as FULLY_CONNECTED in less time.
bool IsBetterAsProduct(int64_t columns);

// Returns whether XNNPACK computes FULLY_CONNECTED as a convolution of one pixel in less time. `inputs`:
// elements of all rows.
bool IsBetterAsConvolution(int64_t columns, int64_t inputs);

}  // namespace fusebox::xnnpack
