// SPDX-License-Identifier: Apache-2.0
// Visits all functions, outermost first, and tries the rules of each composite.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "host/base/cancel.h"
#include "host/base/log.h"
#include "host/fusion/composite.h"
#include "host/fusion/declared.h"
#include "host/fusion/fusion.h"
#include "host/fusion/site.h"
#include "host/fusion/transaction.h"
#include "host/plugin/call.h"

namespace fusebox {
namespace {

constexpr std::string_view kFusableAttr = "tfl_fusable_op";
constexpr std::string_view kCustomPrefix = "custom:";

std::string RuleNameOf(const Node& node) {
  return (node.is(Op::kCustom) ? std::string(kCustomPrefix) : std::string()) + node.name;
}

std::vector<std::string> Texts(const std::vector<Diag>& diags) {
  std::vector<std::string> out;
  for (const Diag& d : diags) out.push_back(ToString(d));
  return out;
}

fbx_status CallRule(const fbx_rule& rule, const HostCall& call, const Node& node,
                    const fbx_composite& composite, const fbx_builder& builder) {
  const InCall in(call, "rule", rule.id, AsAbi(node.location.name));
  const fbx_status status = rule.match ? rule.match(call.abi(), rule.user, &composite) : FBX_OK;
  return status == FBX_OK ? rule.rewrite(call.abi(), rule.user, &composite, &builder) : status;
}

// Runs one rule. Returns the replacement module, or null with the reason in `report`.
std::unique_ptr<Module> RunRule(const RuleRef& ref, Registry& registry, const Module& module,
                                const Function& caller, const Node& node, RuleReport& report) {
  using enum RuleReport::Outcome;
  HostCall call(*ref.plugin, nullptr);
  const CompositeView view(module, caller, node, Uses(caller));
  Transaction transaction(registry, caller, node);
  const fbx_status status = CallRule(*ref.rule, call, node, *view.abi(), *transaction.abi());
  report.reasons = Texts(call.TakeDiags());
  report.outcome = status == FBX_NOT_APPLICABLE ? kNotApplicable : kError;
  if (status != FBX_OK) {
    if (const std::string refused = transaction.Refused(); !refused.empty())
      report.reasons.push_back(refused);
    if (report.reasons.empty()) report.reasons.push_back("the rule returned no reason");
    return nullptr;
  }
  if (Status sound = transaction.Finish(); !sound) {
    report.reasons.push_back("the replacement is invalid: " + sound.error().message);
    return nullptr;
  }
  report.outcome = kFused;
  return transaction.Take();
}

std::string IdOf(const RuleRef& ref) {
  return ref.declared ? ref.declared->id : std::string(FromAbi(ref.rule->id));
}

fbx_tolerance ToleranceOf(const RuleRef& ref) {
  if (ref.declared) return ref.declared->rewrite->tolerance;
  return ref.rule->tolerance ? *ref.rule->tolerance : fbx_tolerance{};
}

// The rule without plugin: the composite becomes a custom op of its name, with attributes in a FlexBuffer
// map.
std::unique_ptr<Module> ToCustomOp(const Function& caller, const Node& node) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("replacement");
  std::vector<Type> types;
  std::vector<ValueId> operands = AddOperands(f, caller, node);
  for (ValueId v : node.results) types.push_back(v == kNoValue ? Type{} : caller.value(v).type);
  Node& op = f.AddNode(Op::kCustom, std::move(operands), types, node.attrs);
  op.name = node.name;
  op.version = 1;
  op.attrs.Erase(kFusableAttr);
  f.outputs = op.results;
  return module;
}

class Fuser {
 public:
  Fuser(Module& module, Registry& registry, const FusionOptions& options)
      : module_(module), registry_(registry), options_(options) {}

  Status Visit(const std::string& name) {
    Function* function = module_.Find(name);
    if (!function || !visited_.insert(name).second) return {};
    for (size_t i = 0; i < function->nodes.size(); ++i) {
      FUSEBOX_TRY(CheckCancelled());
      const Node& node = *function->nodes[i];
      if (!IsSite(node, registry_) || (node.is(Op::kCustom) && !options_.custom_ops)) {
        for (const std::string& callee : References(node)) {
          if (callee != node.body) pending_.push_back(callee);
        }
        continue;
      }
      FUSEBOX_ASSIGN(const std::optional<size_t> added, Site(*function, i));
      if (!added) {
        Descend(*function, node);
      } else {
        i += *added - 1;  // no node was added: i + 1 is the node that moved up
      }
    }
    return {};
  }

  // Queues the functions of the composite's body. If no other site has the body, constants of this site are
  // bound in it.
  void Descend(const Function& caller, const Node& composite) {
    Function* const body = composite.body.empty() ? nullptr : module_.Find(composite.body);
    if (!body) return;
    pending_.push_back(composite.body);
    size_t sites = 0;
    for (const auto& f : module_.functions)
      for (const auto& n : f->nodes) sites += n->body == composite.body;
    const auto is_site = [](const auto& n) { return n->is(Op::kStablehloComposite); };
    const auto computed = [&](ValueId v) { return v != kNoValue && !caller.value(v).is_const(); };
    if (sites == 1 && std::ranges::any_of(body->nodes, is_site) &&
        std::ranges::any_of(composite.operands, computed))
      BindConstants(*body, caller, composite);
  }

  Result<std::vector<SiteReport>> Run() {
    for (const Signature& s : module_.signatures) FUSEBOX_TRY(Visit(s.function));
    if (!module_.functions.empty()) FUSEBOX_TRY(Visit(module_.functions[0]->name));
    while (!pending_.empty()) {
      const std::string next = std::move(pending_.back());
      pending_.pop_back();
      FUSEBOX_TRY(Visit(next));
    }
    WarnIfNothingFused();
    return std::move(reports_);
  }

 private:
  // Returns the number of nodes that replaced the composite (0 if results are operands), or nothing if the
  // body stays.
  Result<std::optional<size_t>> Site(Function& caller, size_t index) {
    const Node& node = *caller.nodes[index];
    SiteReport report{.function = caller.name, .location = node.location.name, .composite = node.name};
    DropDeclaredShapes(caller, node);
    std::vector<SkippedRule> skipped;
    auto rules = registry_.RulesFor(RuleNameOf(node), node.version, node.attrs, &skipped);
    if (!rules) {
      report.why = rules.error().message;
      Warn(report, report.why);
      return Done(std::move(report), std::nullopt);
    }
    if (node.is(Op::kCustom) && rules->empty() && skipped.empty()) return std::nullopt;
    for (SkippedRule& s : skipped) {
      const auto outcome = s.broken ? RuleReport::Outcome::kError : RuleReport::Outcome::kNotApplicable;
      Add({.rule = std::move(s.rule),
           .plugin = std::move(s.plugin),
           .plugin_version = std::move(s.plugin_version),
           .outcome = outcome,
           .reasons = {std::move(s.why)}},
          report);
    }
    for (const RuleRef& ref : *rules) {
      RuleReport said{IdOf(ref), ref.manifest->id, ref.manifest->version};
      auto replacement = ref.declared ? RewriteAsDeclared(*ref.declared, registry_, caller, node, said)
                                      : RunRule(ref, registry_, module_, caller, node, said);
      const fbx_tolerance tolerance = ToleranceOf(ref);
      FUSEBOX_ASSIGN(const std::optional<size_t> added,
                     Apply(caller, index, std::move(replacement), tolerance, said, report));
      Add(std::move(said), report);
      if (added) return Done(std::move(report), added);
    }
    if (options_.fusable_to_custom && node.attrs.b(kFusableAttr, false)) {
      auto replacement = ToCustomOp(caller, node);
      RuleReport said{.rule = std::string(kFusableAttr), .outcome = RuleReport::Outcome::kFused};
      if (Status ok = CompleteOptions(registry_, *replacement->functions[0]->nodes[0]); !ok) {
        said.outcome = RuleReport::Outcome::kError;
        said.reasons.push_back(ok.error().message);
        replacement.reset();
      } else {
        CreditMaker(node, report, said);
      }
      FUSEBOX_ASSIGN(const std::optional<size_t> added,
                     Apply(caller, index, std::move(replacement), fbx_tolerance{}, said, report));
      Add(std::move(said), report);
      if (added) return Done(std::move(report), added);
    }
    report.why = report.rules.empty() ? std::string(kNoRule) : WhyNot(report.rules.back());
    return Done(std::move(report), std::nullopt);
  }

  static std::string WhyNot(const RuleReport& last) {
    if (last.reasons.empty()) return std::string(Name(RuleReport::Outcome::kNotApplicable));
    const bool differs = last.outcome == RuleReport::Outcome::kDiffers;
    return (differs ? "differs from its body: " : "") + last.reasons.front();
  }

  // The results of a placeholder have the shapes of its constants, which do not apply to the replacement.
  void DropDeclaredShapes(Function& caller, const Node& composite) {
    const Function* const body = composite.body.empty() ? nullptr : module_.Find(composite.body);
    if (!body || !IsPlaceholder(module_, *body)) return;
    for (const ValueId v : composite.results) {
      if (v != kNoValue) caller.value(v).type.shape = Shape();
    }
  }

  // Records the plugin whose kernel runs a composite that became a custom op of its name.
  void CreditMaker(const Node& composite, const SiteReport& site, RuleReport& said) const {
    const auto kernels = registry_.KernelsFor(FBX_OP_CUSTOM, composite.name, 1);
    if (!kernels.empty()) {
      const Manifest& manifest = kernels.front().plugin->info().manifest;
      said.plugin = manifest.id;
      said.plugin_version = manifest.version;
    } else if (const auto promised = registry_.WhoProvides(FBX_OP_CUSTOM, composite.name);
               !promised.empty()) {
      Log("fusion").warn("{}: no plugin here has a kernel for {}; listed in the manifest of {}",
                         PlaceOf(site), composite.name, fmt::join(promised, ", "));
    }
  }

  static const std::string& PlaceOf(const SiteReport& site) {
    return site.location.empty() ? site.function : site.location;
  }

  // Logs a cause once, with its first site.
  void Warn(const SiteReport& site, const std::string& cause) {
    if (said_.insert(cause).second) Log("fusion").warn("{}: {}", PlaceOf(site), cause);
  }

  // Logs errors of a rule. Other outcomes are only in the report.
  void Add(RuleReport said, SiteReport& site) {
    if (said.outcome == RuleReport::Outcome::kError) {
      const std::string of =
          said.plugin.empty() ? "" : fmt::format(" of {} {}", said.plugin, said.plugin_version);
      Warn(site, fmt::format("{} is not fused by rule {}{}: {}", site.composite, said.rule, of,
                             fmt::join(said.reasons, "; ")));
    }
    site.rules.push_back(std::move(said));
  }

  std::optional<size_t> Done(SiteReport report, std::optional<size_t> added) {
    report.fused = added.has_value();
    reports_.push_back(std::move(report));
    return added;
  }

  // Returns whether a plugin has a rule for the site, and no warning has its reason yet.
  bool IsOfInterest(const SiteReport& site) const {
    using enum RuleReport::Outcome;
    const auto failed = [](const RuleReport& r) { return r.outcome == kError || r.outcome == kDiffers; };
    return !site.rules.empty() && !said_.contains(site.why) && std::ranges::none_of(site.rules, failed);
  }

  // A composite for which no plugin has a rule is no reason for a warning: its body is its definition.
  void WarnIfNothingFused() const {
    constexpr size_t kMost = 3;
    std::set<std::string> causes;
    size_t count = 0;
    for (const SiteReport& site : reports_) {
      if (site.fused) return;
      count += site.rules.empty() ? 0 : 1;
      if (IsOfInterest(site)) causes.insert(fmt::format("{}: {}", site.composite, site.why));
    }
    if (causes.empty()) return;
    const size_t more = causes.size() - std::min(kMost, causes.size());
    causes.erase(std::next(causes.begin(), static_cast<ptrdiff_t>(causes.size() - more)), causes.end());
    Log("fusion").warn("{}none of {} composites is fused: {}{}",
                       module_.source.empty() ? "" : module_.source + ": ", count, fmt::join(causes, "; "),
                       more > 0 ? fmt::format("; and {} more", more) : "");
  }

  Result<std::optional<size_t>> Apply(Function& caller, size_t index, std::unique_ptr<Module> scratch,
                                      fbx_tolerance tolerance, RuleReport& said, SiteReport& report) {
    if (!scratch) return std::nullopt;
    const Node& node = *caller.nodes[index];
    Function& replacement = *scratch->functions[0];
    Status runs;
    if (auto folded = Fold(registry_, *scratch, replacement); !folded) runs = std::unexpected(folded.error());
    if (runs) runs = CheckKernels(registry_, replacement, options_.kernels_elsewhere);
    if (runs && options_.for_file) runs = CheckVariables(replacement);
    if (!runs) {
      said.outcome = RuleReport::Outcome::kError;
      said.reasons.push_back("the replacement is invalid: " + runs.error().message);
      return std::nullopt;
    }
    Stamp(replacement, node, said);
    if (options_.approve) {
      const Function* body = node.body.empty() ? nullptr : module_.Find(node.body);
      if (body) {
        const Candidate candidate{.module = module_,
                                  .composite = node,
                                  .body = *body,
                                  .replacement = replacement,
                                  .scratch = *scratch,
                                  .constants = ConstantsOf(caller, node),
                                  .used_results = UsedResults(caller, node),
                                  .tolerance = tolerance};
        FUSEBOX_ASSIGN(const Approval approval, options_.approve(candidate));
        report.verification = approval.verification;
        report.compared = approval.compared;
        if (!approval.approved) {
          said.outcome =
              approval.compared ? RuleReport::Outcome::kDiffers : RuleReport::Outcome::kNotApplicable;
          said.reasons.push_back(approval.why);
          return std::nullopt;
        }
      }
    }
    for (const auto& n : replacement.nodes)
      report.emitted.push_back(n->is(Op::kCustom) ? n->name : std::string(Name(n->op)));
    if (options_.for_file && !node.body.empty()) report.replaced = NodesOf(module_, node.body);
    KeepBody(module_, caller, node, replacement, options_.keep_bodies, said.reasons);
    const size_t added = replacement.nodes.size();
    report.why = "fused by " + said.rule;
    InlineAt(caller, index, replacement);
    return added;
  }

  Module& module_;
  Registry& registry_;
  const FusionOptions& options_;
  std::set<std::string> visited_, said_;
  std::vector<std::string> pending_;
  std::vector<SiteReport> reports_;
};

}  // namespace

bool IsSite(const Node& node, Registry& registry) {
  return node.is(Op::kStablehloComposite) ||
         (node.is(Op::kCustom) && node.body.empty() && registry.KernelsOf(FBX_OP_CUSTOM, node.name).empty());
}

std::string_view Name(RuleReport::Outcome outcome) {
  switch (outcome) {
    case RuleReport::Outcome::kFused: return "fused";
    case RuleReport::Outcome::kNotApplicable: return "not applicable";
    case RuleReport::Outcome::kError: return "error";
    case RuleReport::Outcome::kDiffers: return "differs from its body";
  }
  return "?";
}

fbx_tolerance ToleranceOf(Registry& registry, const Node& fused) {
  if (!fused.fused) return {};
  const auto rules = registry.RulesFor(fused.fused->composite, 0, fused.attrs);
  if (!rules) return {};
  for (const RuleRef& ref : *rules)
    if (ref.manifest->id == fused.fused->plugin && IdOf(ref) == fused.fused->rule) return ToleranceOf(ref);
  return {};
}

Result<std::vector<SiteReport>> Fuse(Module& module, Registry& registry, const FusionOptions& options) {
  return Fuser(module, registry, options).Run();
}

}  // namespace fusebox
