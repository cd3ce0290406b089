// SPDX-License-Identifier: Apache-2.0
// Checks how input, filter and bias of an op with packed weights combine, and whether XNNPACK supports it.
#pragma once

#include <cstdint>

#include "plugins/xnnpack/ops/narrow.h"
#include "plugins/xnnpack/partition/subgraph.h"
#include "plugins/xnnpack/partition/values.h"

namespace fusebox::xnnpack {

// Indices of the operands, and the meaning of the filter's dims.
struct WeightOperands {
  uint32_t input, filter, bias;
  int channel_axis;  // of the filter in the file: one scale per index
  // f32 x i8: activations may be quantized at run time; else the filter is unpacked
  bool may_be_dynamic = true;
  bool may_be_int4 = false;  // i4 filters
  bool checked = false;      // scales and zero points were read before
};

// The datatypes to pack with; the op sets dims. Throws Reject with the reason.
Weights PlanWeights(const NetworkNode& node, const WeightOperands& operands);
// Same, for an op that passed PlanWeights in this network: scales and zero points, which may be many, are not
// read again.
Weights PlanCheckedWeights(const NetworkNode& node, const WeightOperands& operands);

// The dims of a result, of which XNNPACK computes one: the unknown one, or the first.
Dims DimsButOne(Tensor t);

// Adds the inputs of packing 8-bit weights besides the inputs of Subgraph::Pack: scales and zero point of the
// activations, which determine biases and multipliers.
void AddActivations(Recipe& recipe, Tensor input, Tensor output);

}  // namespace fusebox::xnnpack
