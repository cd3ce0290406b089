// SPDX-License-Identifier: Apache-2.0
// Comparison of one result of a fused op with the body's result.
#pragma once

#include <string>
#include <vector>

#include "host/verify/verify.h"

namespace fusebox::verify {

std::string Short(double);  // "2.1e-07"

struct Bound {
  double atol, rtol;
};
// Tolerated rounding per element; empty: unused.
using Slack = std::vector<double>;

bool IsComparable(DType);

// Compares one result of one case. `body` is the result of the f32 body: twice its error is tolerated, and
// values where it leaves the f32 range are skipped. Infinities and NaNs of the reference must match.
// Results with scales are compared as they are stored: one step, or `atol` steps if that is more, is
// tolerated.
void CompareResult(size_t result, const Tensor& fused, const Tensor& truth, const Tensor& body, Bound bound,
                   const Slack& slack, bool quantized, Case& out);

}  // namespace fusebox::verify
