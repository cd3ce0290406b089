// SPDX-License-Identifier: Apache-2.0
// How input, filter and bias of an op that packs weights go together, and what keeps XNNPACK from taking
// them.
#pragma once

#include "plugins/xnnpack/subgraph.h"
#include "plugins/xnnpack/values.h"

namespace fusebox::xnnpack {

// Where the operands are, and what the filter's dims mean.
struct WeightOperands {
  uint32_t input, filter, bias;
  int channel_axis;  // of the filter as the file has it: one scale per index
  // f32 x i8: the activation may be quantized while it runs; else the filter is unpacked
  bool may_be_dynamic = true;
  bool may_be_nibbles = false;  // i4 filters
};

// The datatypes to pack with; dims are left to the op. Throws Reject with the reason.
Weights PlanWeights(const NetworkNode& node, const WeightOperands& operands);

// What XNNPACK packs along with 8-bit weights beside what Subgraph::Pack knows: the scales and zero point of
// the activations, which the biases and multipliers are made of.
void AddActivations(Recipe& recipe, Tensor input, Tensor output);

}  // namespace fusebox::xnnpack
