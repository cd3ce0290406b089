// SPDX-License-Identifier: Apache-2.0
// Comparison of two tensors.
#pragma once

#include <string>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

struct Tolerance {
  double atol = 1e-5;
  double rtol = 1e-5;
};

struct Difference {
  bool compared = false;  // some pair of tensors was
  // |a - b| <= atol + rtol |b| everywhere; NaNs are equal, and so are equal infinities
  bool within = true;
  double absolute = 0;  // largest |a - b|; infinite if only one is finite
  double relative = 0;  // largest |a - b| / |b|; infinite if b is 0 and a is not
  double atol = 0;      // smallest atol that would pass with this rtol
  std::string where;    // of the largest excess over the tolerance: "[0,3]: 0.25 and 0.5"; or another
                        // difference: "shape ..."
  void Add(const Difference& other);  // keeps the worse of both
};

// Strings are equal or not. Different types or shapes: not within; but f32 compares with f64.
Result<Difference> Compare(const Tensor& a, const Tensor& b, const Tolerance& tolerance);

}  // namespace fusebox::cli
