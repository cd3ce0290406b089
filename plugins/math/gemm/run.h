// SPDX-License-Identifier: Apache-2.0
// Runs GEMMs over rows that lie in memory at constant distances, on this thread or on the host's.
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>

#include "plugins/math/gemm/f32.h"
#include "plugins/math/gemm/input.h"

namespace fusebox::math {

// The most outputs of a task, which fill whole groups of panels.
inline constexpr size_t kTaskOutputs = 128;

struct F32Product {
  StridedRows<float> a;
  F32Task task;
  float* c;
  size_t ldc;  // elements from a row of C to the next
};

// Groups [begin, end) of the outputs, on this thread.
void Multiply(const F32Product& product, size_t begin, size_t end);
// All outputs, in tasks of some rows and groups on the host's threads.
void Multiply(const fbx_host* host, const F32Product& product);

}  // namespace fusebox::math
