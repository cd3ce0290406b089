// SPDX-License-Identifier: Apache-2.0
// Nets as ONNX models, for ONNX Runtime.
//
// Convolutions, pools and resizes have their channels first, as ONNX requires. Ops on elements keep the order
// of their operands, and a Transpose stands where an op needs another order. Inputs and outputs have the
// order of the op that reads or computes them, so that the model does not transpose them.
//
// 8-bit activations are unsigned (the int8 value plus 128), because ONNX Runtime is slower with signed ones
// on x86-64. They stand between QuantizeLinear and DequantizeLinear around each op, which ONNX Runtime fuses.
// 8-bit weights of f32 activations: see net_onnx_products.cc.
#pragma once

#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "tests/bench/onnx.h"

namespace fusebox::bench {

struct OnnxNet {
  struct Slot {
    std::string name;
    Type type;                  // in the function; unknown dims are 1
    onnx::Type element;         // in the model
    std::vector<int64_t> dims;  // in the model
    bool channels_first;        // the model has another order of the four dims
    bool shifted;               // the model has int8 values plus 128
  };
  std::string model;
  std::vector<Slot> inputs, outputs;  // in the order of the function
};

// Error: an op, an option or a type has no translation.
Result<OnnxNet> ToOnnx(const Function&);

}  // namespace fusebox::bench
