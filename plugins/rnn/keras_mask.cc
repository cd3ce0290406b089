// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/keras_mask.h"

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

// A number of steps, which the file may not know.
Value StepCount(Build& build, const KerasLayer& layer, int64_t steps) {
  if (steps >= 0) return build.i32_scalar(static_cast<int32_t>(steps));
  const Value shape = build.builtin("SHAPE", {build.in(layer.mask())}).attr("out_type", "INT32")[0];
  return build.builtin("STRIDED_SLICE", {shape, build.i32({1}), build.i32({2}), build.i32({1})})
      .attr("shrink_axis_mask", 1)[0];
}

}  // namespace

CountedSteps::CountedSteps(const Site& site, const KerasLayer& layer, Build& build)
    : masked_(layer.masked()),
      zero_output_(site.attrs().b("zero_output_for_mask", false)),
      units_(static_cast<int32_t>(layer.units())),
      inputs_(layer.Inputs(build)) {
  if (!masked_) return;
  counts_ = build.builtin("SELECT_V2", {build.in(layer.mask()), build.i32_scalar(1), build.i32_scalar(0)})[0];
  if (layer.go_backwards()) counts_ = build.reverse(counts_, 1);
  so_far_ = RunningSum(build, counts_, false);
  // Steps that count get the numbers n, n - 1, .. 1, the others 0: ordered by that they are where the op should read them.
  const Value rank = build.builtin("MUL", {RunningSum(build, counts_, true), counts_})[0];
  const Value steps = StepCount(build, layer, site.in(KerasLayer::kInputs).dim(1));
  inputs_ = Gather(build, inputs_, build.builtin("TOPK_V2", {rank, steps}, 2)[1]);
}

Value CountedSteps::Outputs(Build& build, Value sequence) const {
  if (!masked_) return sequence;
  const int32_t ahead[] = {0, 0, 1, 0, 0, 0};
  const int64_t dims[] = {3, 2};
  const Value padded = build.builtin("PAD", {sequence, build.constant<int32_t>(ahead, dims)})[0];
  return Gather(build, padded, zero_output_ ? build.builtin("MUL", {so_far_, counts_})[0] : so_far_);
}

Value CountedSteps::FinalState(Build& build, Value sequence, Value initial, Value final_state) const {
  if (!masked_) return final_state;
  const Value all =
      build.builtin("STRIDED_SLICE", {so_far_, build.i32({0, -1}), build.i32({0, 0}), build.i32({1, 1})})
          .attr("begin_mask", 1)
          .attr("end_mask", 3)[0];
  const Value first = build.reshape(initial, {-1, 1, units_});
  const Value states = build.builtin("CONCATENATION", {first, sequence}).attr("axis", 1)[0];
  return build.reshape(Gather(build, states, all), {-1, units_});
}

}  // namespace fusebox::rnn
