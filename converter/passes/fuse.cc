// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "converter/import/tables/composites.h"
#include "converter/passes/lists.h"
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"
#include "host/base/trace.h"
#include "host/speed.h"
#include "host/verify/runnable.h"
#include "host/verify/verify.h"

namespace fusebox::converter {
namespace {

// Bodies need not have names for their inputs and outputs.
Signature SignatureOf(const Function& f, std::string key) {
  Signature out{std::move(key), f.name, {}, {}};
  for (size_t i = 0; i < f.inputs.size(); ++i) out.input_names.push_back("in" + std::to_string(i));
  for (size_t i = 0; i < f.outputs.size(); ++i) out.output_names.push_back("out" + std::to_string(i));
  return out;
}

}  // namespace

Result<std::unique_ptr<Module>> RunnableCopy(const Module& module, const Function& body,
                                             const std::vector<Type>& inputs, Registry& registry) {
  auto copy = std::make_unique<Module>();
  const std::string name = CopyInto(module, body, *copy);
  Function& f = *copy->Find(name);
  copy->signatures = {SignatureOf(f, "body")};
  for (size_t i = 0; i < f.inputs.size() && i < inputs.size(); ++i)
    if (inputs[i].shape.ranked()) f.value(f.inputs[i]).type = inputs[i];
  const Options options;
  Report report;
  Context context{*copy, registry, options, report};
  FUSEBOX_TRY(RunVerificationPasses(context));
  for (const auto& function : copy->functions) LowerComposites(*copy, *function, Lowered::kAll);
  if (const std::string lists = WhyListsStay(*copy); !lists.empty()) return Unsupported(lists);
  for (const auto& function : copy->functions)
    for (const auto& node : function->nodes)
      if (node->is(Op::kOpaque)) return Unsupported("no kernel for " + node->name);
  return copy;
}

namespace {

// Limits of --verify sample. A comparison that has begun is finished.
constexpr double kSecondsPerSite = 1;
constexpr double kSecondsPerModel = 10;
constexpr int64_t kTimedSize = 3;  // of unknown dimensions

verify::Options VerifyOptions(const Options& options) {
  verify::Options out;
  out.all = options.verify == Verification::kStrict;
  out.seed = options.verify_seed;
  out.seconds = out.all ? 0 : kSecondsPerSite;
  return out;
}

bool HasUnknown(const std::vector<Type>& types) {
  return std::any_of(types.begin(), types.end(),
                     [](const Type& t) { return t.shape.ranked() && !t.shape.is_static(); });
}

void Settle(Type& type, int64_t size) {
  if (!type.shape.ranked()) return;
  for (int64_t& d : type.shape.dims())
    if (d < 0) d = size;
}

// Returns operand types with every unknown dimension of the function's inputs set to `size`, so that derived
// operands (a state of the batch size) get consistent shapes. Returns nullopt if the function does not
// support this size.
std::optional<std::vector<Type>> TypesAtSite(Context& context, const Candidate& candidate, int64_t size) {
  const auto holds = [&](const auto& f) {
    return std::ranges::any_of(f->nodes, [&](const auto& n) { return n.get() == &candidate.composite; });
  };
  const auto caller = std::ranges::find_if(candidate.module.functions, holds);
  if (caller == candidate.module.functions.end()) return std::nullopt;
  Module copy;
  Function& f = *copy.Find(CopyInto(candidate.module, **caller, copy));
  const auto site =
      std::ranges::find_if((*caller)->nodes, [&](const auto& n) { return n.get() == &candidate.composite; });
  f.nodes.resize(static_cast<size_t>(site - (*caller)->nodes.begin()));
  f.outputs.clear();
  for (const ValueId v : candidate.composite.operands)
    if (v != kNoValue) f.outputs.push_back(v);
  for (const ValueId v : f.inputs) Settle(f.value(v).type, size);
  copy.signatures = {SignatureOf(f, "site")};
  const Options options;
  Report report;
  Context inner{copy, context.registry, options, report};
  if (!FoldToFixpoint(inner)) return std::nullopt;
  std::vector<Type> types;
  size_t next = 0;
  for (const ValueId v : candidate.composite.operands)
    types.push_back(v == kNoValue ? Type{} : f.value(f.outputs[next++]).type);
  return types;
}

void Note(Context& context, const Node& composite, const std::string& text) {
  context.report.notes.push_back(fmt::format("{}: {}: {}", composite.location.name, composite.name, text));
}

// `module` holds the body, `inputs` the static types of the operands.
void NoteIfSlower(Context& context, const Candidate& candidate, const Module& module,
                  const std::vector<Type>& inputs) {
  std::vector<bool> absent;
  std::vector<Shape> shapes;
  for (const Type& type : inputs) {
    absent.push_back(type.dtype == DType::kNone);
    if (!absent.back()) shapes.push_back(type.shape);
  }
  const auto speed =
      CompareSpeed(verify::CopyOf(candidate.scratch, candidate.replacement, candidate.constants, absent),
                   verify::CopyOf(module, *module.functions[0], candidate.constants, absent), shapes,
                   context.options.registry);
  if (speed && speed->slower()) Note(context, candidate.composite, "the fusion is slower: " + speed->Text());
}

// Verifies with every unknown dimension of the operands set to `size`.
Result<verify::Verdict> VerifyAt(Context& context, const Candidate& candidate, std::vector<Type> inputs,
                                 int64_t size) {
  verify::Options options = VerifyOptions(context.options);
  options.unknown_dim = size;
  if (HasUnknown(inputs)) inputs = TypesAtSite(context, candidate, size).value_or(inputs);
  for (Type& type : inputs) {
    Settle(type, size);
    options.shapes.push_back(type.shape);
  }
  verify::Verdict not_run;
  auto runnable = RunnableCopy(candidate.module, candidate.body, inputs, context.registry);
  if (!runnable) {
    not_run.why = runnable.error().message;
    return not_run;
  }
  const Function& body = *(*runnable)->functions[0];
  FUSEBOX_ASSIGN(
      verify::Verdict verdict,
      verify::VerifyFused(**runnable, body, candidate.scratch, candidate.replacement, candidate.constants,
                          candidate.used_results, candidate.tolerance, context.options.registry, options));
  if (options.all && verdict.outcome == verify::Verdict::Outcome::kAgrees && size == kTimedSize)
    NoteIfSlower(context, candidate, **runnable, inputs);
  return verdict;
}

// Verifies one fused site, with odd sizes for unknown dimensions.
Result<verify::Verdict> VerifySite(Context& context, const Candidate& candidate) {
  TraceSpan span("verify fusion");
  span.Arg("composite", candidate.composite.name);
  span.Arg("location", candidate.composite.location.name);
  std::vector<Type> inputs;
  for (ValueId v : candidate.replacement.inputs) inputs.push_back(candidate.replacement.value(v).type);
  std::vector<int64_t> sizes = {kTimedSize};
  if (HasUnknown(inputs) && context.options.verify == Verification::kStrict) sizes = {kTimedSize, 1, 7};
  verify::Verdict all;
  for (int64_t size : sizes) {
    FUSEBOX_ASSIGN(verify::Verdict verdict, VerifyAt(context, candidate, inputs, size));
    all.cases.insert(all.cases.end(), verdict.cases.begin(), verdict.cases.end());
    all.outcome = verdict.outcome;
    all.truth = verdict.truth;
    all.why = verdict.why;
    all.unprovable = verdict.unprovable;
    all.shortened |= verdict.shortened;
    if (verdict.outcome != verify::Verdict::Outcome::kAgrees) break;
  }
  return all;
}

// Decides on all sites of a model.
class Verifier {
 public:
  explicit Verifier(Context& context) : context_(context) {}

  Result<Approval> operator()(const Candidate& candidate) {
    FUSEBOX_ASSIGN(const verify::Verdict verdict, Verify(candidate));
    const bool differs = verdict.outcome == verify::Verdict::Outcome::kDiffers;
    const bool agrees = verdict.outcome == verify::Verdict::Outcome::kAgrees;
    const bool strict = context_.options.verify == Verification::kStrict;
    context_.report.verification_failed |= differs || (strict && verdict.unprovable);
    if (verdict.shortened)
      Note(context_, candidate.composite,
           fmt::format("verified with {} of the inputs, because that takes more than {} s; --verify "
                       "strict has no limit",
                       verdict.cases.size() < 2 ? "one" : "some", kSecondsPerSite));
    const bool approved = IsPlaceholder(candidate.module, candidate.body)
                              ? context_.options.placeholders == Placeholders::kFuse
                              : agrees || (!differs && !strict);
    return Approval{approved, verdict.Summary(), differs ? verdict.why : verdict.Summary(),
                    agrees || differs};
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result<verify::Verdict> Verify(const Candidate& candidate) {
    verify::Verdict none;
    if (IsPlaceholder(candidate.module, candidate.body)) {
      none.why = "the body is a placeholder";
      return none;
    }
    if (context_.options.verify == Verification::kSample && spent_.count() > kSecondsPerModel) {
      none.why =
          fmt::format("{} s were spent on other composites; --verify strict has no limit", kSecondsPerModel);
      return none;
    }
    const Clock::time_point start = Clock::now();
    context_.Step("verifying " + candidate.composite.name);
    auto verdict = VerifySite(context_, candidate);
    spent_ += Clock::now() - start;
    return verdict;
  }

  Context& context_;
  std::chrono::duration<double> spent_{};
};

}  // namespace

namespace {

// A rule that fails is not one that declines.
bool RuleFailed(const SiteReport& site) {
  return !site.fused && std::ranges::any_of(site.rules, [](const RuleReport& rule) {
    return rule.outcome == RuleReport::Outcome::kError;
  });
}

size_t CountComposites(const Module& module) {
  const auto is_composite = [](const auto& node) { return node->is(Op::kStablehloComposite); };
  size_t count = 0;
  for (const auto& f : module.functions)
    count += static_cast<size_t>(std::ranges::count_if(f->nodes, is_composite));
  return count;
}

}  // namespace

Status FuseComposites(Context& context) {
  if (context.options.composites != Composites::kFuse) return {};
  FusionOptions options;
  options.keep_bodies = context.options.keep_bodies;
  options.fusable_to_custom = true;
  options.kernels_elsewhere = true;
  options.for_file = true;
  options.custom_ops = context.options.placeholders == Placeholders::kFuse;
  const Progress before = context.progress;
  if (context.options.verify != Verification::kOff) {
    options.approve = Verifier(context);
    context.Announce(CountComposites(context.module));
  }
  FUSEBOX_ASSIGN(context.report.sites, Fuse(context.module, context.registry, options));
  if (context.options.verify == Verification::kStrict)
    context.report.verification_failed |= std::ranges::any_of(context.report.sites, RuleFailed);
  context.progress.total = before.total + context.progress.done - before.done;  // only some are verified
  std::erase_if(context.report.sites,
                [](const SiteReport& site) { return site.composite == kErf && site.rules.empty(); });
  RemoveUnreachable(context.module);
  return {};
}

}  // namespace fusebox::converter
