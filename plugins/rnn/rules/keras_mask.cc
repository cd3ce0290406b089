// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/keras_mask.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace fusebox::rnn {
namespace {

Value Gather(Build& build, Value from, Value at) {
  return build.builtin("GATHER", {from, at}).attr("axis", 1).attr("batch_dims", 1)[0];
}

Value RunningSum(Build& build, Value v, bool reverse) {
  return build.builtin("CUMSUM", {v, build.i32_scalar(1)})
      .attr("exclusive", false)
      .attr("reverse", reverse)[0];
}

// The number of steps, which may be unknown in the file.
Value StepCount(Build& build, const KerasLayer& layer, int64_t steps) {
  if (steps >= 0) return build.i32_scalar(static_cast<int32_t>(steps));
  const Value shape = build.builtin("SHAPE", {build.in(layer.mask())}).attr("out_type", "i32")[0];
  const int32_t axis = layer.time_axis();
  return build.builtin("STRIDED_SLICE", {shape, build.i32({axis}), build.i32({axis + 1}), build.i32({1})})
      .attr("shrink_axis_mask", 1)[0];
}

Value Scalar(Build& build, float value) { return build.constant<float>({&value, 1}, {}); }

// One row of zeros before the steps.
Value ZerosFirst(Build& build, Value sequence) {
  const int32_t before_and_after[] = {0, 0, 1, 0, 0, 0};
  const int64_t dims[] = {3, 2};
  return build.builtin("PAD", {sequence, build.constant<int32_t>(before_and_after, dims)})[0];
}

constexpr float kHuge = 1e37F;

// The weight of the huge feature. Its product with kHuge exceeds every other sum of the gate. It is the
// largest weight of the gate, so that it does not change the scale if the weights are quantized, within
// bounds that keep the product finite and huge.
float HugeWeight(Tensor kernel, int64_t units, int64_t gate) {
  if (!kernel.has_value() || kernel.dtype() != FBX_F32) return 0.125F;
  const std::span<const float> values = kernel.values<const float>();
  const int64_t columns = 4 * units;
  float largest = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (static_cast<int64_t>(i) % columns / units == gate) largest = std::max(largest, std::fabs(values[i]));
  return std::clamp(largest, 1e-30F, 8.0F);
}

}  // namespace

MaskedSteps::MaskedSteps(const Site& site, const KerasLayer& layer, Build& build, bool keep_cell)
    : masked_(layer.masked()),
      time_major_(layer.time_major()),
      zero_output_(site.attrs().b("zero_output_for_mask", false)),
      keep_cell_(keep_cell),
      units_(static_cast<int32_t>(layer.units())),
      kernel_(site.in(layer.kernel())),
      inputs_(layer.Inputs(build)) {
  if (!masked_) return;
  Value mask = build.in(layer.mask());
  if (time_major_) {
    mask = build.transpose(mask, {1, 0});
    inputs_ = build.transpose(inputs_, {1, 0, 2});
  }
  unmasked_ = build.builtin("SELECT_V2", {mask, build.i32_scalar(1), build.i32_scalar(0)})[0];
  if (layer.go_backwards()) unmasked_ = build.reverse(unmasked_, 1);
  unmasked_count_ = RunningSum(build, unmasked_, false);
  // Unmasked steps have the ranks n, n - 1, .. 1, the others 0. Sorted by rank, the unmasked steps come
  // first.
  const Value rank = build.builtin("MUL", {RunningSum(build, unmasked_, true), unmasked_})[0];
  const Value steps = StepCount(build, layer, site.in(KerasLayer::kInputs).dim(layer.time_axis()));
  const auto order = build.builtin("TOPK_V2", {rank, steps}, 2);
  inputs_ = keep_cell_ ? KeepCell(build, order[0], order[1]) : Gather(build, inputs_, order[1]);
}

// The unmasked steps, then steps of zeros with the huge feature.
Value MaskedSteps::KeepCell(Build& build, Value rank, Value from) const {
  const Value is_unmasked = build.builtin("GREATER", {rank, build.i32_scalar(0)})[0];
  const Value after_zeros = build.builtin("ADD", {from, build.i32_scalar(1)})[0];
  const Value at = build.builtin("SELECT_V2", {is_unmasked, after_zeros, build.i32_scalar(0)})[0];
  const Value feature = build.builtin("SELECT_V2", {is_unmasked, Scalar(build, 0), Scalar(build, kHuge)})[0];
  const Value last = build.builtin("EXPAND_DIMS", {feature, build.i32_scalar(2)})[0];
  return build.builtin("CONCATENATION", {Gather(build, ZerosFirst(build, inputs_), at), last})
      .attr("axis", 2)[0];
}

void MaskedSteps::ExtendWeights(Build& build, Value* weights) const {
  if (!masked_ || !keep_cell_) return;
  const float gate_weights[] = {-HugeWeight(kernel_, units_, 0), HugeWeight(kernel_, units_, 1), 0, 0};
  const int64_t dims[] = {units_, 1};
  for (size_t gate = 0; gate < 4; ++gate) {
    const std::vector<float> column(static_cast<size_t>(units_), gate_weights[gate]);
    weights[gate] = build.builtin("CONCATENATION", {weights[gate], build.constant<float>(column, dims)})
                        .attr("axis", 1)[0];
  }
}

Value MaskedSteps::Outputs(Build& build, Value sequence) const {
  if (!masked_) return sequence;
  const Value padded = ZerosFirst(build, sequence);
  const Value at = zero_output_ ? build.builtin("MUL", {unmasked_count_, unmasked_})[0] : unmasked_count_;
  const Value outputs = Gather(build, padded, at);
  return time_major_ ? build.transpose(outputs, {1, 0, 2}) : outputs;
}

Value MaskedSteps::FinalState(Build& build, Value sequence, Value initial, Value final_state) const {
  if (!masked_) return final_state;
  const Value all = build
                        .builtin("STRIDED_SLICE",
                                 {unmasked_count_, build.i32({0, -1}), build.i32({0, 0}), build.i32({1, 1})})
                        .attr("begin_mask", 1)
                        .attr("end_mask", 3)[0];
  const Value first = build.reshape(initial, {-1, 1, units_});
  const Value states = build.builtin("CONCATENATION", {first, sequence}).attr("axis", 1)[0];
  return build.reshape(Gather(build, states, all), {-1, units_});
}

}  // namespace fusebox::rnn
