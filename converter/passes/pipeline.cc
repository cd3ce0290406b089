// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "converter/passes/pass.h"
#include "host/base/cancel.h"
#include "host/base/trace.h"

namespace fusebox::converter {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> all = {
#define FUSEBOX_PASS(name, function, run_by, what) {name, what, function, Pass::run_by},
#include "converter/passes/passes.def"
#undef FUSEBOX_PASS
  };
  return all;
}

namespace {

using Counts = std::map<std::string, int64_t>;  // of nodes, by op

Counts CountNodes(const Module& module) {
  Counts counts;
  for (const auto& function : module.functions)
    for (const auto& node : function->nodes)
      ++counts[node->name.empty() ? std::string(Name(node->op)) : node->name];
  return counts;
}

uint64_t Sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [op, count] : counts) sum += count;
  return static_cast<uint64_t>(sum);
}

// Adds the changes of a pass to a trace: "+2 CONV_2D", "-1 MUL".
void AddChange(TraceSpan& span, const Pass& pass, const Counts& before, const Counts& after) {
  Counts change = after;
  for (const auto& [op, count] : before) change[op] -= count;
  std::vector<std::string> texts;
  for (const auto& [op, count] : change)
    if (count != 0) texts.push_back(fmt::format("{:+} {}", count, op));
  span.Arg("what", std::string(pass.what));
  span.Arg("nodes before", Sum(before));
  span.Arg("nodes after", Sum(after));
  span.Arg("changed", std::move(texts));
}

Status RunPass(const Pass& pass, Context& context) {
  const std::string place = "pass " + std::string(pass.name);
  FUSEBOX_TRY(CheckCancelled().At(place));
  TraceSpan span(pass.name, "pass");
  const Counts before = span ? CountNodes(context.module) : Counts();
  FUSEBOX_TRY(pass.run(context).At(place));
  if (span) AddChange(span, pass, before, CountNodes(context.module));
  if (context.options.after_pass) context.options.after_pass(pass.name, context.module);
  if (Status sound = Verify(context.module); !sound)
    return Internal(place + " left a broken graph: " + sound.error().message);
  return {};
}

}  // namespace

Status RunPasses(Context& context) {
  context.Announce(Passes().size());
  for (const Pass& pass : Passes()) {
    context.Step("pass " + std::string(pass.name));
    FUSEBOX_TRY(RunPass(pass, context));
  }
  return {};
}

Status RunVerificationPasses(Context& context) {
  for (const Pass& pass : Passes())
    if (pass.run_by == Pass::kAlsoVerification)
      FUSEBOX_TRY(pass.run(context).At("pass " + std::string(pass.name)));
  return {};
}

}  // namespace fusebox::converter
