// SPDX-License-Identifier: Apache-2.0
// Functions of arrays of f32, within 4 ulp; kSilu where sigmoid(x) is a normal number, and kGelu within the
// error that its formula has in f32. NaN stays NaN, and infinities have their limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/math/simd/targets.h"

namespace fusebox::math {

enum class Function : uint8_t {
  kExp,
  kElu,  // exp(x) - 1 below 0, otherwise x
  kTanh,
  kSigmoid,
  kSilu,  // x * sigmoid(x)
  kGelu,  // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
};

// y[i] = f(x[i]). x and y are the same memory or apart.
void Map(Function f, const float* x, float* y, size_t count);

struct FunctionKernels {
  void (*map)(Function f, const float* x, float* y, size_t count);
};

// The code for every instruction set that this machine has, best first.
std::vector<const FunctionKernels*> AllFunctionKernels();
using FunctionChoice = SimdChoice<FunctionKernels, AllFunctionKernels>;

}  // namespace fusebox::math
