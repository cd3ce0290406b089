// SPDX-License-Identifier: Apache-2.0
// The parts of net_onnx. They throw Untranslated.
#pragma once

#include <string>

#include "tests/bench/net_onnx_values.h"

namespace fusebox::bench {

// Convolutions, pools, FULLY_CONNECTED and BATCH_MATMUL. Returns false for other ops.
bool AddProduct(OnnxValues&, const Node&);
// Sets the result to `name`, real numbers, after an activation ("RELU", "NONE"). 8-bit numbers are clipped
// after they are quantized, since ONNX Runtime fuses nothing that stands between; and only if their scale
// allows numbers out of the range.
void SetActivated(OnnxValues&, ValueId result, Order, const std::string& activation, const std::string& name);
// The elements of a constant list of integers.
std::vector<int64_t> ConstantInts(const OnnxValues&, ValueId);

}  // namespace fusebox::bench
