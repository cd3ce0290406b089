// SPDX-License-Identifier: Apache-2.0
// Fusion: composites meet rules. find -> match -> rewrite (a transaction) -> validate -> approve -> apply ->
// fold -> report
//
// A rewrite builds a replacement Function with the composite's operands as inputs and its results as outputs.
// Nothing of the module changes before the replacement is valid and approved; then it is inlined at the site
// and folded at once, so that kernels see constant, already transformed weights. A composite that no rule
// takes keeps its body; the composites inside that body are tried next.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/eval/eval.h"
#include "host/graph/graph.h"
#include "host/plugin/plugin.h"

namespace fusebox {

// What one rule said about one composite.
struct RuleReport {
  std::string rule, plugin, plugin_version;
  enum class Outcome { kFused, kNotApplicable, kError, kDisproved } outcome = Outcome::kNotApplicable;
  std::vector<std::string> reasons;
};
std::string_view Name(RuleReport::Outcome);

struct SiteReport {
  std::string function, location, composite;
  bool fused = false;
  std::vector<RuleReport>
      rules;          // those that their manifest or plugin keeps from being asked, then in the order asked
  std::string why;    // one line: what became of it
  std::string proof;  // from approve: "f64, 12 cases, worst 3.1e-7"; empty: not asked
  std::vector<std::string> emitted;  // ops that replaced it, after folding
};

// A fused site before it is applied, for the proof. Operands that are constants at the site stand in
// `constants`.
struct Candidate {
  const Module& module;
  const Node& composite;
  const Function& body;            // what the composite is defined to compute
  const Function& replacement;     // what the rule would put there, folded; the same inputs and outputs
  const Module& scratch;           // holds `replacement` (and nothing else of the module)
  std::vector<Tensor> constants;   // per operand; empty data: not constant
  std::vector<bool> used_results;  // results that somebody reads
  fbx_tolerance tolerance;
};
struct Approval {
  bool approved = true;
  std::string proof, why;
};

struct FusionOptions {
  // Asked before a replacement is applied; unset: approved.
  std::function<Result<Approval>(const Candidate&)> approve;
  // Keep the body of what becomes a custom op, and record it (Module::metadata "fusebox.fused", see
  // docs/format.md).
  enum class KeepBodies { kNone, kCustom, kAll } keep_bodies = KeepBodies::kNone;
  // A composite with the attribute tfl_fusable_op = true that no rule takes becomes a custom op of its name
  // (converter).
  bool fusable_to_custom = false;
  // A replacement may hold custom ops for which no plugin here has a kernel (converter).
  bool kernels_elsewhere = false;
};

// Fuses every composite of `module` that a rule takes. Fails only when the module itself is broken.
Result<std::vector<SiteReport>> Fuse(Module& module, Registry&, const FusionOptions& = {});

// Is this body a placeholder: does it ignore all its inputs?
bool IsPlaceholder(const Module&, const Function& body);

// Fused ops in a file: metadata "fusebox.fused" (a FlexBuffer, see docs/format.md) says for each which plugin
// and rule made it and which subgraph is its body. Record writes it from the nodes, Attach sets the nodes
// from it after a Read.
void RecordFused(Module&);
Status AttachFused(Module&);

}  // namespace fusebox
