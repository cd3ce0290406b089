// SPDX-License-Identifier: Apache-2.0
// Group "body": fused ops compute what the bodies of their composites compute.
#include <algorithm>
#include <array>
#include <cmath>

#include "check/workload.h"
#include "host/graph/values.h"
#include "host/speed.h"
#include "host/tflite/tflite.h"
#include "host/verify/verify.h"

namespace fusebox::check {
namespace {

using verify::Verdict;

// Errors relative to the largest value of an output. The second is for weights and results in 8 bits.
constexpr double kFloatError = 1e-4;
constexpr double kQuantizedError = 0.02;
constexpr double kMostMeanSteps =
    0.15;  // truncation: 0.5, or 0.17 where half of the results are 0 and a third exact

struct Compared {
  std::string op;
  Verdict verdict;
  std::string error = {};  // of the rule, which must fuse or decline
};

bool IsOfPlugin(const Subject& subject, const std::string& op) {
  return std::ranges::any_of(subject.manifest.ops, [&](const ManifestOp& of) { return of.name == op; });
}

verify::Options OptionsOf(const Subject& subject) {
  // Half of the test's time: the rest is for the other bodies and for rounding.
  return {.all = true, .seed = subject.options.seed, .seconds = subject.options.seconds / 2};
}

std::string Reasons(const RuleReport& rule) {
  std::string text;
  for (const std::string& reason : rule.reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

// Verifies the composites that rules of the plugin replace when the model is opened.
Status VerifyComposites(Module& module, const std::shared_ptr<Registry>& registry,
                        const verify::Options& options, std::vector<Compared>& out) {
  FusionOptions fusion;
  fusion.approve = [&](const Candidate& c) -> Result<Approval> {
    FUSEBOX_ASSIGN(Verdict verdict,
                   verify::VerifyFused(c.module, c.body, c.scratch, c.replacement, c.constants,
                                       c.used_results, c.tolerance, registry, options));
    out.push_back({c.composite.name, std::move(verdict)});
    return Approval{};
  };
  FUSEBOX_ASSIGN(const auto sites, Fuse(module, *registry, fusion));
  for (const SiteReport& site : sites) {
    if (site.fused) continue;
    out.push_back({site.composite, {}});
    if (!site.rules.empty() && site.rules.back().outcome == RuleReport::Outcome::kError)
      out.back().error = Reasons(site.rules.back());
    out.back().verdict.why = "not fused: " + (site.rules.empty() ? site.why : Reasons(site.rules.back()));
  }
  return {};
}

// Verifies the plugin's fused ops in the file, which also holds their bodies.
Status VerifyKept(const Subject& subject, const Module& module, const std::shared_ptr<Registry>& registry,
                  const verify::Options& options, std::vector<Compared>& out) {
  FUSEBOX_ASSIGN(auto rows, verify::VerifyModel(module, registry, options));
  for (verify::Row& row : rows)
    if (row.plugin == subject.manifest.id || IsOfPlugin(subject, row.op))
      out.push_back({row.op, std::move(row.verdict)});
  return {};
}

// Constants of f32 that composites of main read become inputs. Returns how many.
size_t ComputeConstants(Function& main) {
  size_t count = 0;
  for (const auto& node : main.nodes) {
    if (!node->is(Op::kStablehloComposite)) continue;
    for (ValueId& v : node->operands) {
      if (v == kNoValue || !main.value(v).is_const() || main.value(v).type.dtype != DType::kF32) continue;
      v = main.AddInput(main.value(v).type);
      ++count;
    }
  }
  return count;
}

// `computed`: with composites only, whose constant operands become inputs.
Result<std::vector<Compared>> Verdicts(const Subject& subject, bool computed) {
  FUSEBOX_ASSIGN(const auto rig, Rig::Create(subject.manifest, subject.options.config, {}));
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(subject.model));
  FUSEBOX_TRY(AttachFused(*module));
  rig->registry()->FillOptions(*module);
  const verify::Options options = OptionsOf(subject);
  std::vector<Compared> out;
  if (computed && ComputeConstants(*module->functions[0]) == 0) return out;
  if (!computed) FUSEBOX_TRY(VerifyKept(subject, *module, rig->registry(), options, out));
  FUSEBOX_TRY(VerifyComposites(*module, rig->registry(), options, out));
  return out;
}

// Largest average difference of quantized results, in steps.
double MeanSteps(const Verdict& verdict) {
  double most = 0;
  for (const verify::Case& c : verdict.cases) most = std::max(most, c.mean_steps);
  return most;
}

Finding Conclude(const std::vector<Compared>& verdicts) {
  std::string why;
  size_t agree = 0;
  size_t cases = 0;
  for (const auto& [op, verdict, error] : verdicts) {
    if (!error.empty()) return Failed("the rule for " + op + " fails: " + error);
    if (verdict.outcome == Verdict::Outcome::kDiffers)
      return Failed(op + " differs from its body: " + verdict.why);
    if (const double off = MeanSteps(verdict); off > kMostMeanSteps)
      return Failed(op + " is off by " + std::to_string(off) +
                    " steps on average, although rounding to the nearest is off by less than 0.1");
    if (verdict.outcome == Verdict::Outcome::kAgrees) {
      ++agree;
      cases += verdict.cases.size();
    } else if (why.empty()) {
      why = op + ": " + verdict.why;
    }
  }
  if (verdicts.empty()) return NotTested("no op of the plugin in this model has a body");
  if (agree == 0) return NotTested(why);
  return Passed(std::to_string(agree) + (agree == 1 ? " op, " : " ops, ") + std::to_string(cases) + " cases" +
                (why.empty() ? "" : "; not compared: " + why));
}

Finding Values(const Subject& subject) {
  const auto verdicts = Verdicts(subject, false);
  return verdicts ? Conclude(*verdicts) : Failed(verdicts.error().message);
}

// A rule may decline operands that are computed, but not fail, and its kernel must read them.
Finding ComputedConstants(const Subject& subject) {
  const auto verdicts = Verdicts(subject, true);
  if (!verdicts) return NotTested(verdicts.error().message);
  return verdicts->empty() ? NotTested("no composite in this model has a constant operand")
                           : Conclude(*verdicts);
}

// Fused ops of the file become their bodies.
void UseBodies(Module& module) {
  for (const auto& f : module.functions) {
    for (size_t i = 0; i < f->nodes.size();) {
      const Node& node = *f->nodes[i];
      const Function* const body = node.fused && !node.body.empty() ? module.Find(node.body) : nullptr;
      if (body != nullptr) InlineAt(*f, i, *body);
      else ++i;
    }
  }
}

// Returns whether a fused op is computed in 8 bits, and its body in floats.
bool HasQuantizedOps(const Module& module) {
  for (const auto& f : module.functions) {
    const auto quantized = [&](ValueId v) { return v != kNoValue && f->value(v).quant != nullptr; };
    for (const auto& node : f->nodes)
      if (node->fused && std::ranges::any_of(node->operands, quantized)) return true;
  }
  return false;
}

bool HasFixedDims(const Module& module) {
  const Function& main = *module.functions[0];
  return std::ranges::all_of(main.inputs, [&](ValueId v) { return main.value(v).type.shape.is_static(); });
}

// Returns the shapes of the inputs, with another outermost dim if `batch` is not negative.
std::vector<Shape> ShapesOf(const Module& module, int64_t batch) {
  const Function& main = *module.functions[0];
  std::vector<Shape> shapes;
  for (const ValueId v : main.inputs) {
    Shape shape = main.value(v).type.shape;
    for (int64_t& dim : shape.dims()) dim = dim < 0 ? 5 : dim;
    if (shape.rank() > 0 && batch >= 0) shape.dims()[0] = batch;
    shapes.push_back(shape);
  }
  return shapes;
}

// The fused model and the model with the bodies, with these input shapes.
Result<std::vector<Tensor>> RunWith(const Subject& subject, const std::vector<Shape>& shapes, bool fuse,
                                    double special = 0) {
  FUSEBOX_ASSIGN(const auto rig, Rig::Create(subject.manifest, subject.options.config, {}));
  FUSEBOX_ASSIGN(auto module, tflite::ReadFile(subject.model));
  FUSEBOX_TRY(AttachFused(*module));
  if (!fuse) UseBodies(*module);
  ModelOptions options;
  options.registry = rig->registry();
  options.fuse = fuse;
  options.delegates.emplace();
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), options));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  return RunShapes(*session, shapes, subject.options.seed, special);
}

bool HasBodies(const Module& module) {
  const auto has = [](const auto& node) { return !node->body.empty(); };
  return std::ranges::any_of(module.functions,
                             [&](const auto& f) { return std::ranges::any_of(f->nodes, has); });
}

Finding CompareShapes(const Subject& subject, const Module& module) {
  const double rtol = HasQuantizedOps(module) ? kQuantizedError : kFloatError;
  size_t compared = 0;
  const auto large = 130 + static_cast<int64_t>(subject.options.seed * 7919 % 200);
  for (const int64_t batch : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{65}, large}) {
    const std::vector<Shape> shapes = ShapesOf(module, batch);
    const auto body = RunWith(subject, shapes, false);
    if (!body) continue;  // the body does not take them
    const auto fused = RunWith(subject, shapes, true);
    const std::string text = shapes.empty() ? "" : " for inputs of " + ToString(shapes[0]);
    if (!fused) {
      if (HasFixedDims(module)) continue;  // the rule may rely on the dims of the file
      return Failed("the fused op does not run, but its body does" + text + ": " + fused.error().message);
    }
    if (const std::string where = DifferenceOf(*body, *fused, rtol, 2); !where.empty())
      return Failed("the fused op differs from its body" + text + ": " + where);
    ++compared;
  }
  if (compared == 0) return NotTested("no body takes other outermost dims than those of the file");
  return Passed(std::to_string(compared) + " sizes");
}

// Reads the model, then `check`.
template <class Check>
Finding WithBodies(const Subject& subject, const Check& check) {
  const auto module = tflite::ReadFile(subject.model);
  if (!module) return Failed(module.error().message);
  if (const Status attached = AttachFused(**module); !attached) return Failed(attached.error().message);
  return HasBodies(**module) ? check(**module) : NotTested("no op of the plugin in this model has a body");
}

bool HasNan(const Tensor& t) {
  const auto values = ToDoubles(t);
  return std::ranges::any_of(values, [](double v) { return std::isnan(v); });
}

Finding Nan(const Subject& subject) {
  return WithBodies(subject, [&](const Module& module) {
    const auto shapes = ShapesOf(module, -1);
    const auto body = RunWith(subject, shapes, false, std::nan(""));
    const auto fused = RunWith(subject, shapes, true, std::nan(""));
    if (!body || !fused) return NotTested((body ? fused : body).error().message);
    bool any = false;
    for (size_t i = 0; i < body->size() && i < fused->size(); ++i) {
      any |= HasNan((*body)[i]);
      if (HasNan((*body)[i]) && !HasNan((*fused)[i]))
        return Failed("an input is NaN: output " + std::to_string(i) +
                      " of the body is NaN, that of the fused op is not");
    }
    return any ? Passed() : NotTested("the body does not return NaN");
  });
}

Finding Shapes(const Subject& subject) {
  return WithBodies(subject, [&](const Module& module) { return CompareShapes(subject, module); });
}

// Runs without a rig, whose guards take time. Times are noisy, so the result is a remark.
Finding SpeedOfBoth(const Subject& subject) {
  return WithBodies(subject, [&](const Module& module) {
    Config config = subject.options.config;
    config.plugins.insert(config.plugins.begin(), subject.manifest.path);
    const auto registry = Registry::Create(config);
    if (!registry) return NotTested(registry.error().message);
    auto body = Clone(module);
    UseBodies(*body);
    const auto speed = CompareSpeed(Clone(module), std::move(body), ShapesOf(module, -1), *registry);
    if (!speed) return NotTested(speed.error().message);
    return Passed((speed->slower() ? "slower: " : "") + speed->Text());
  });
}

constexpr std::array kBodyTests = {
    Test{"body.values", "fused ops agree with their bodies in f64, on values of every class",
         Test::Of::kModel, Values},
    Test{"body.computed", "also if operands that are constants of the file are computed", Test::Of::kModel,
         ComputedConstants},
    Test{"body.nan", "return NaN where their bodies do", Test::Of::kModel, Nan},
    Test{"body.shapes", "also for outermost dims of 0, 1, 2, 7, 65 and more, where the body takes them",
         Test::Of::kModel, Shapes},
    Test{"body.speed", "never: it reports the times of fused ops and bodies", Test::Of::kModel, SpeedOfBoth},
};

}  // namespace

std::span<const Test> BodyTests() { return kBodyTests; }

}  // namespace fusebox::check
