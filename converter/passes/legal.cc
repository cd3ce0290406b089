// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "converter/import/tables/lookup.h"
#include "converter/import/tables/translate.h"
#include "converter/passes/consequences.h"
#include "converter/passes/lists.h"
#include "converter/passes/open_inputs.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

// Why a node's result has no element type, according to its kernels; else empty.
std::string WhyUntyped(Context& context, Function& f, const Node& node) {
  const auto untyped = [&](ValueId v) { return v != kNoValue && f.value(v).type.dtype == DType::kNone; };
  if (std::ranges::none_of(node.results, untyped) || std::ranges::any_of(node.operands, untyped)) return "";
  if (node.is(Op::kReadVariable))
    return "nothing assigns its variable: the file does not hold its value; convert the model from which the "
           "file was made";
  const Status status = InferNode(context.registry, context.module, f, node);
  std::string types;
  for (const ValueId v : node.operands)
    if (v != kNoValue) types += (types.empty() ? "" : ", ") + std::string(Name(f.value(v).type.dtype));
  return "no kernel computes " + std::string(Name(node.op)) + " of " + types +
         (status ? "" : ": " + status.error().message);
}

// Error for a loop or branch whose condition is not bool; else empty.
std::string WhyNoCondition(Context& context, const Function& f, const Node& node) {
  DType dtype = DType::kBool;
  if (node.is(Op::kIf)) dtype = f.value(node.operands[0]).type.dtype;
  if (node.is(Op::kWhile)) {
    const Function& condition = *context.module.Find(node.attrs.function("cond_subgraph_index")->name);
    if (condition.outputs.size() == 1) dtype = condition.value(condition.outputs[0]).type.dtype;
  }
  return dtype == DType::kBool ? "" : "its condition is " + std::string(Name(dtype)) + ", expected bool";
}

// Why a composite was not fused, from its rules.
std::string WhyNotFused(const Report& report, const Node& node) {
  std::string text;
  for (const SiteReport& site : report.sites) {
    if (site.fused || site.location != node.location.name || site.composite != node.name) continue;
    for (const RuleReport& rule : site.rules)
      for (const std::string& reason : rule.reasons)
        text += (text.empty() ? "" : "; ") + rule.rule + ": " + reason;
    return text.empty() ? site.why : text;
  }
  return "no rule matches this composite";
}

// Returns why a node cannot be written, or an empty string if it can.
std::string Problem(Context& context, Function& f, const Node& node) {
  if (node.is(Op::kStablehloComposite) && context.options.composites != Composites::kKeep) {
    const std::string why = WhyNotFused(context.report, node);
    if (node.body.empty()) return why + "; it has no body";
    const bool placeholder = IsPlaceholder(context.module, *context.module.Find(node.body));
    return placeholder ? why + "; its body is a placeholder" : why;
  }
  if (Info(node.op).code >= 0) {
    const std::string untyped = WhyUntyped(context, f, node);
    return untyped.empty() ? WhyNoCondition(context, f, node) : untyped;
  }
  if (std::string why = WhyItemDiffers(f, node); !why.empty()) return why;
  if (!node.is(Op::kOpaque)) return kUnknownElement;
  if (IsLookupTable(node.name) && node.operands.empty() && node.attrs.Find("keys"))
    return "";                                                                  // reported by its readers
  if (std::string why(node.attrs.str("reason", "")); !why.empty()) return why;  // set by the importer
  // Runs the translation again to get its reason, and drops the emitted nodes.
  Translation translation(context.module, f, context.registry, node);
  const size_t mark = translation.mark();
  const Status status = TranslateSource(translation);
  translation.Rollback(mark);
  return status ? "only some of its results could be translated" : status.error().message;
}

// True if no operand types would help.
bool IsHopeless(Registry& registry, const Node& node) {
  return node.is(Op::kOpaque) && (node.attrs.Find("reason") || !HasTranslation(registry, node.name));
}

class Survey {
 public:
  explicit Survey(Context& context) : context_(context) {}

  // Reports all problems reachable from a function, grouped, without consequences of others. Returns the
  // first one. `fix`: advice for unknown sizes.
  std::string Visit(const std::string& entry, const std::string& fix) {
    std::vector<Found> found;
    std::set<std::string> seen;
    Collect(entry, seen, found);
    Problems problems;
    for (const Found& one : found) problems.emplace(one.node, one.why);
    const auto follows = Consequences(context_.module, *context_.module.Find(entry), problems,
                                      [&](const Node& node) { return IsHopeless(context_.registry, node); });
    std::string first;
    for (const Found& one : found) {
      if (follows.contains(one.node)) continue;
      const bool sizes = !fix.empty() && one.why.find("not known") != std::string::npos;
      const std::string why = sizes ? one.why + ": " + fix : one.why;
      if (told_.insert(one.node).second) Add(*one.function, *one.node, why);
      if (first.empty()) first = "op " + NameOf(*one.node) + " (" + one.node->location.name + "): " + why;
    }
    return first;
  }

 private:
  struct Found {
    const Function* function;
    const Node* node;
    std::string why;
  };

  // In execution order.
  void Collect(const std::string& name, std::set<std::string>& seen, std::vector<Found>& found) {
    if (!seen.insert(name).second) return;
    Function& f = *context_.module.Find(name);
    const size_t count = f.nodes.size();
    for (size_t i = 0; i < count; ++i) {
      const Node& node = *f.nodes[i];
      const auto [known, fresh] = problems_.try_emplace(&node);
      if (fresh) known->second = Problem(context_, f, node);
      if (!known->second.empty()) found.push_back({&f, &node, known->second});
      for (const std::string& callee : References(node)) Collect(callee, seen, found);
    }
  }

  static std::string NameOf(const Node& node) {
    return node.is(Op::kOpaque) || node.is(Op::kStablehloComposite) ? node.name : std::string(Name(node.op));
  }

  void Add(const Function& f, const Node& node, const std::string& why) {
    const std::string op = NameOf(node);
    const std::string& layer = node.location.layer;
    for (UnsupportedOps& u : context_.report.unsupported) {
      if (u.op != op || u.reason != why) continue;
      ++u.count;
      return;
    }
    const std::string where = layer.empty() ? "function " + f.name : "layer " + layer;
    context_.report.unsupported.push_back({op, why, where + ": " + node.location.name, 1});
  }

  Context& context_;
  std::map<const Node*, std::string> problems_;  // by visited node; empty: no problem
  std::set<const Node*> told_;
};

// Bodies are kept for hosts without the plugin. A body that cannot be written is dropped; the fused op stays.
void DropIllegalBodies(Context& context) {
  for (const auto& f : context.module.functions) {
    for (auto& node : f->nodes) {
      if (node->is(Op::kStablehloComposite) || node->body.empty()) continue;
      Report unread;
      Context apart{context.module, context.registry, context.options, unread};
      const std::string why = Survey(apart).Visit(node->body, "");
      if (why.empty()) continue;
      context.Note("function " + f->name + ": " + Describe(*f, *node) + ": body dropped: " + why);
      node->body.clear();
    }
  }
}

}  // namespace

// Signatures that cannot be written are dropped and reported if others remain, unless they were requested by
// name.
Status RequireLegal(Context& context) {
  DropIllegalBodies(context);
  Survey survey(context);
  std::string first;
  const bool asked = !context.options.signatures.empty();
  std::vector<Signature> kept;
  for (const Signature& s : context.module.signatures) {
    const std::string why = survey.Visit(s.function, HowToFix(context, s));
    if (why.empty()) {
      kept.push_back(s);
      continue;
    }
    if (first.empty()) first = "signature " + s.key + ": " + why;
    context.report.refused.emplace_back(s.key, why);
  }
  if (kept.empty() || (asked && !first.empty())) return Unsupported(first);
  context.module.signatures = std::move(kept);
  RemoveUnreachable(context.module);  // including variables and bodies of dropped signatures
  return {};
}

}  // namespace fusebox::converter
