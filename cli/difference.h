// SPDX-License-Identifier: Apache-2.0
// How far two tensors are apart.
#pragma once

#include <string>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

struct Tolerance {
  double atol = 1e-5, rtol = 1e-5;
};

struct Difference {
  // everywhere |a - b| <= atol + rtol |b|; two NaNs are equal, so are two equal infinities
  bool within = true;
  double absolute = 0;  // the largest |a - b|; infinite where only one is a number
  double relative = 0;  // the largest |a - b| / |b|; infinite where b is 0 and a is not
  double atol = 0;      // the least atol that would pass with this rtol
  std::string where;    // of the largest excess over the tolerance: "[0,3]: 0.25 and 0.5"; or what else
                        // differs: "shape ..."
  void Add(const Difference& other);  // the worse of both
};

// Strings are equal or not. Other types or shapes: not within.
Result<Difference> Compare(const Tensor& a, const Tensor& b, const Tolerance& tolerance);

}  // namespace fusebox::cli
