// SPDX-License-Identifier: Apache-2.0
// Fusion: replaces composites by the ops of rules. find -> match -> rewrite (a transaction) -> validate ->
// approve -> apply -> fold -> report
//
// A rewrite builds a replacement Function with the composite's operands as inputs and its results as outputs.
// The module changes only after the replacement is valid and approved. The replacement is then inlined and
// folded, so kernels see constant, already transformed weights. A composite without matching rule keeps its
// body, and the composites inside the body are tried next.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/eval/eval.h"
#include "host/graph/graph.h"
#include "host/plugin/registry.h"

namespace fusebox {

// Result of one rule for one composite.
struct RuleReport {
  std::string rule, plugin, plugin_version;
  enum class Outcome { kFused, kNotApplicable, kError, kDiffers } outcome = Outcome::kNotApplicable;
  std::vector<std::string> reasons;
};
std::string_view Name(RuleReport::Outcome);

// SiteReport::why if no manifest lists the name.
inline constexpr std::string_view kNoRule = "no plugin has a rule for this name";

struct SiteReport {
  std::string function, location, composite;
  bool fused = false;
  std::vector<RuleReport> rules;  // skipped rules (by manifest or plugin state), then the tried ones in order
  std::string why;                // one line: the outcome
  std::string verification;       // from approve: "agrees (f64, 12 cases, worst 3.1e-7)"; empty: none
  bool compared = false;          // from approve; false with a verification: "not verified: ..."
  std::vector<std::string> emitted;    // ops that replaced it, after folding
  std::vector<ReplacedNode> replaced;  // converter: of the body, at most 512
};

// The site for people: "sequential/lstm: lstm" for the call sequential/lstm/PartitionedCall of lstm_<UUID>.
std::string SiteText(const SiteReport&);
// "lstm" for lstm_6dea2437-f386-4831-a4a3-afc1c63539c6, a name that Keras makes.
std::string_view WithoutUuid(std::string_view composite);

// A fused site before it is applied, for verification. Operands that are constant at the site are in
// `constants`.
struct Candidate {
  const Module& module;
  const Node& composite;
  const Function& body;            // defines the composite
  const Function& replacement;     // from the rule, folded; same inputs and outputs
  const Module& scratch;           // holds only `replacement`
  std::vector<Tensor> constants;   // per operand; empty data: not constant
  std::vector<bool> used_results;  // results with readers
  fbx_tolerance tolerance;
};
struct Approval {
  bool approved = true;
  std::string verification, why;
  bool compared = true;  // false: the replacement or the body could not be run
};

struct FusionOptions {
  // Called before a replacement is applied; unset: approved.
  std::function<Result<Approval>(const Candidate&)> approve;
  // Keeps the body of a composite that becomes a custom op, and records it (Module::metadata "fusebox.fused",
  // docs/format.md).
  enum class KeepBodies { kNone, kCustom, kAll } keep_bodies = KeepBodies::kNone;
  // A composite with tfl_fusable_op = true and no matching rule becomes a custom op of its name (converter).
  bool fusable_to_custom = false;
  // A replacement may hold custom ops for which no plugin here has a kernel (converter).
  bool kernels_elsewhere = false;
  // Custom ops are sites. Nothing can be verified against them.
  bool custom_ops = true;
  // The module becomes a .tflite file, which holds no initial values of variable tensors (converter).
  bool for_file = false;
};

// Returns whether rules are tried for the node: a composite, or a custom op that has neither a body nor a
// kernel here. Rules for a custom op implement "custom:" + its name.
bool IsSite(const Node&, Registry&);

// Fuses every composite of `module` that has a matching rule. Fails only if the module itself is invalid.
Result<std::vector<SiteReport>> Fuse(Module& module, Registry&, const FusionOptions& = {});

// The nodes of a body and of the functions that it calls, at most 512.
std::vector<ReplacedNode> NodesOf(const Module&, const std::string& body);
// Sets Provenance::replaces of the fused ops of a module that was read from a file, from the reports of its
// conversion. Ops that the reports do not match stay as they are.
void AttachReplaced(Module&, std::span<const SiteReport>);

// The tolerance of the rule that made a fused op. Zeros: it declares none, or is not found.
fbx_tolerance ToleranceOf(Registry&, const Node& fused);

// True if the body ignores all its inputs.
bool IsPlaceholder(const Module&, const Function& body);

// Metadata "fusebox.fused" (a FlexBuffer, docs/format.md) stores for each fused op its plugin, rule and body
// subgraph. RecordFused writes it from the nodes; AttachFused sets the nodes from it after a Read.
void RecordFused(Module&);
Status AttachFused(Module&);

}  // namespace fusebox
