// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/common/text.h"
#include "plugins/rnn/rules/rules.h"

namespace fusebox::rnn {
namespace {

using common::ShapeText;

enum Operand : uint32_t { kInputs, kH, kC, kKernel, kRecurrent, kBias, kMask };
enum Result : uint32_t { kLast, kSequence, kFinalH, kFinalC };

constexpr const char* kNames[] = {"inputs", "init_h", "init_c", "kernel", "recurrent_kernel", "bias", "mask"};

std::string SubjectOf(uint32_t operand) { return common::Subject(operand) + " (" + kNames[operand] + ")"; }

void CheckFloats(const Site& site, uint32_t operand, int rank) {
  const Tensor t = site.in(operand);
  site.require(
      t.present() && t.dtype() == FBX_F32, "DTYPE",
      std::string("is ") + (t.present() ? dtype_name(t.dtype()) : "absent") + ", only f32 is supported",
      SubjectOf(operand));
  site.require(t.rank() == rank, "RANK",
               "has shape " + ShapeText(t) + ", expected rank " + std::to_string(rank), SubjectOf(operand));
}

void RequireConstant(const Site& site, uint32_t operand) {
  const Tensor t = site.in(operand);
  site.require(
      !t.is_variable() && t.is_const() && t.is_static(), "NONCONST",
      t.is_variable() ? "is read from a variable that the model changes" : "is computed, not constant",
      SubjectOf(operand));
}

void CheckActivations(const Site& site) {
  for (const char* key : {"activation", "recurrent_activation"}) {
    const std::string_view name = site.attrs().s(key, "");
    site.require(common::KerasActivation(name).has_value(), "ATTR",
                 "is " + std::string(name) + ", which is not supported", std::string("attr ") + key);
  }
}

// [kernel.., in, 4u] to [4u, kernel.., in].
Value RowsFirst(Build& build, Value kernel, int rank) {
  if (rank == 3) return build.transpose(kernel, {2, 0, 1});
  return rank == 4 ? build.transpose(kernel, {3, 0, 1, 2}) : build.transpose(kernel, {4, 0, 1, 2, 3});
}

// The last of the steps [batch, steps, ..].
Value LastOf(Build& build, Value steps, int rank) {
  const int32_t time = 1 << 1;
  const int32_t others = ((1 << rank) - 1) & ~time;
  const int64_t dims[] = {rank};
  std::vector<int32_t> begin(static_cast<size_t>(rank), 0);
  std::vector<int32_t> ones(begin.size(), 1);
  const Value end = build.constant<int32_t>(begin, dims);
  begin[1] = -1;
  return build
      .builtin("STRIDED_SLICE",
               {steps, build.constant<int32_t>(begin, dims), end, build.constant<int32_t>(ones, dims)})
      .attr("begin_mask", others)
      .attr("end_mask", others)
      .attr("shrink_axis_mask", time)[0];
}

// The output of the last step. Without a mask it is the final h, so that the op alone replaces the composite.
Value LastOutput(Build& build, const Build::NodeRef& op, int rank, bool masked, bool sequence) {
  if (!masked) return op[1];
  if (sequence) return LastOf(build, op[0], rank);
  const int64_t time[] = {1};
  return build.builtin("SQUEEZE", {op[0]}).attr("squeeze_dims", std::span<const int64_t>(time))[0];
}

}  // namespace

void KerasConvLstmRule::match(const Site& site) {
  site.require(site.options().s("conv_lstm", "custom") == "custom", "OPTION",
               "allows builtin ops only; the loop remains", "option conv_lstm");
  site.require(site.in_count() == kMask || site.in_count() == kMask + 1, "ARITY",
               "has " + std::to_string(site.in_count()) + " operands, expected 6, or 7 with a mask");
  site.require(site.out_count() == 4, "ARITY",
               "has " + std::to_string(site.out_count()) + " results, expected 4");
  const int rank = site.in(kKernel).present() ? site.in(kKernel).rank() : -1;
  site.require(rank >= 3 && rank <= 5, "RANK", "has rank " + std::to_string(rank) + ", expected 3 to 5",
               SubjectOf(kKernel));
  CheckFloats(site, kInputs, rank + 1);
  for (const uint32_t operand : {kH, kC, kKernel, kRecurrent}) CheckFloats(site, operand, rank);
  CheckFloats(site, kBias, 1);
  for (const uint32_t operand : {kKernel, kRecurrent, kBias}) RequireConstant(site, operand);
  CheckActivations(site);
}

void KerasConvLstmRule::rewrite(const Site& site, Build& build) {
  const int rank = site.in(kKernel).rank();
  const bool sequence = site.attrs().b("sequence", true);
  const bool masked = site.in_count() > kMask;
  std::vector<Value> operands = {build.in(kInputs),
                                 build.in(kH),
                                 build.in(kC),
                                 RowsFirst(build, build.in(kKernel), rank),
                                 RowsFirst(build, build.in(kRecurrent), rank),
                                 build.in(kBias)};
  if (masked) operands.push_back(build.in(kMask));
  const auto op = build.custom("fusebox.conv_lstm", operands, 3)
                      .attr("strides", site.attrs().i64s("strides"))
                      .attr("dilations", site.attrs().i64s("dilations"))
                      .attr("padding", site.attrs().s("padding", "VALID"))
                      .attr("sequence", sequence)
                      .attr("go_backwards", site.attrs().b("go_backwards", false))
                      .attr("activation", site.attrs().s("activation", "tanh"))
                      .attr("recurrent_activation", site.attrs().s("recurrent_activation", "sigmoid"))
                      .attr("zero_output_for_mask", site.attrs().b("zero_output_for_mask", false));
  const bool last = site.out(kLast).uses() > 0;
  build.result(kLast, LastOutput(build, op, rank + 1, masked && last, sequence));
  build.result(kSequence, op[0]);
  build.result(kFinalH, op[1]);
  build.result(kFinalC, op[2]);
}

}  // namespace fusebox::rnn
