// SPDX-License-Identifier: Apache-2.0
// Runs GEMMs over rows that lie in memory at constant distances, on this thread or on the host's.
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>

#include "plugins/math/gemm/f32.h"
#include "plugins/math/gemm/input.h"

namespace fusebox::math {

// The most rows and outputs of a task. The outputs fill whole groups of panels.
inline constexpr size_t kTaskRows = 64;
inline constexpr size_t kTaskOutputs = 128;

// `a` gives the rows, their number and their segments; the task's are not read.
struct F32Product {
  StridedRows<float> a;
  F32Task task;
};

// Groups [begin, end) of the outputs, on this thread.
void Multiply(const F32Product& product, size_t begin, size_t end);
// All outputs, in tasks of some rows and groups on the host's threads.
void Multiply(const fbx_host* host, const F32Product& product);

}  // namespace fusebox::math
