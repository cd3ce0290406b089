// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "host/run/run.h"
#include "host/verify/cases.h"
#include "host/verify/rounding.h"
#include "host/verify/verify.h"

namespace fusebox::verify {
namespace {

std::string Short(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

// A function with its program and runner.
struct Runnable {
  std::unique_ptr<Module> module;
  std::unique_ptr<run::Program> program;
  std::unique_ptr<run::Runner> runner;

  static Result<Runnable> Make(std::unique_ptr<Module> module, const std::shared_ptr<Registry>& registry) {
    Runnable out;
    out.module = std::move(module);
    FUSEBOX_ASSIGN(out.program, run::Program::Create(*out.module, registry));
    FUSEBOX_ASSIGN(out.runner, run::Runner::Create(*out.program, 1));
    return out;
  }
  Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs) {
    runner->Reset();
    return Again(inputs);
  }
  Result<std::vector<Tensor>> Again(std::span<const Tensor> inputs) {
    return runner->Run(module->functions[0]->name, inputs);
  }
};

// Copies the function with the site's constants bound into a module of its own. Operands that are absent at
// the site (no type in `replacement`) are not inputs.
std::unique_ptr<Module> CopyOf(const Module& from, const Function& function,
                               const std::vector<Tensor>& constants, const std::vector<bool>& absent) {
  auto copy = std::make_unique<Module>();
  Function& f = *copy->Find(CopyInto(from, function, *copy));
  std::stable_partition(copy->functions.begin(), copy->functions.end(),
                        [&](const auto& p) { return p.get() == &f; });
  for (size_t i = 0; i < constants.size() && i < f.inputs.size(); ++i)
    if (constants[i].data) f.ReplaceUses(f.inputs[i], f.AddConst(constants[i]));
  for (size_t i = std::min(absent.size(), f.inputs.size()); i-- > 0;)
    if (absent[i]) f.inputs.erase(f.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  f.input_names.clear();
  copy->signatures.clear();
  return copy;
}

Shape Sized(const Shape& shape, int64_t unknown) {
  if (!shape.ranked()) return shape;
  std::vector<int64_t> dims = shape.dims();
  for (int64_t& d : dims)
    if (d < 0) d = unknown;
  return Shape(std::move(dims));
}

std::string Position(const Shape& shape, size_t index) {
  std::vector<std::string> at;
  for (size_t d = shape.dims().size(); d-- > 0;) {
    const auto size = static_cast<size_t>(std::max<int64_t>(shape[d], 1));
    at.push_back(std::to_string(index % size));
    index /= size;
  }
  std::string out = "[";
  for (size_t i = at.size(); i-- > 0;) out += at[i] + (i ? "," : "");
  return out + "]";
}

bool Same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

double Distance(double a, double b) {
  if (Same(a, b)) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? INFINITY : d;
}

struct Bound {
  double atol, rtol;
};

// The largest error of the f32 body, over finite values.
double OwnError(const std::vector<double>& plain, const std::vector<double>& should) {
  double own = 0;
  for (size_t i = 0; i < should.size() && i < plain.size(); ++i)
    if (std::isfinite(plain[i]) && std::isfinite(should[i]))
      own = std::max(own, std::fabs(plain[i] - should[i]));
  return own;
}

double ScaleOf(const std::vector<double>& should) {
  double scale = 1;
  for (const double v : should)
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  return scale;
}

// Tolerated rounding per element; empty: unused.
using Slack = std::vector<double>;

// Compares one result of one case. `body` is the result of the f32 body: twice its error is tolerated, and
// values where it leaves the f32 range are skipped. Infinities and NaNs of the reference must match.
void CompareResult(size_t result, const Tensor& fused, const Tensor& truth, const Tensor& body, Bound bound,
                   const Slack& slack, Case& out) {
  if (fused.type.shape != truth.type.shape) {
    out.passed = false;
    out.worst = INFINITY;
    out.where = "result " + std::to_string(result) + " is " + ToString(fused.type) + ", expected shape " +
                ToString(truth.type.shape);
    return;
  }
  const auto is = ToDoubles(fused), should = ToDoubles(truth), plain = ToDoubles(body);
  const double own = OwnError(plain, should), scale = ScaleOf(should);
  for (size_t i = 0; i < is.size() && i < should.size() && i < plain.size(); ++i) {
    if (!(std::isfinite(plain[i]) && std::isfinite(should[i])) && !Same(plain[i], should[i])) continue;
    const double error = Distance(is[i], should[i]);
    const double allowed = std::isfinite(should[i])
                               ? std::max({bound.atol + bound.rtol * std::fabs(should[i]), 2 * own,
                                           i < slack.size() ? slack[i] : 0})
                               : 0;
    const bool within = error <= allowed;
    // Reports the worst element, of the failing ones if any.
    const double scaled = error / scale;
    if ((within && !out.passed) || (scaled <= out.worst && within == out.passed)) continue;
    out.worst = within == out.passed ? scaled : std::max(scaled, out.worst);
    out.passed &= within;
    out.where = "result " + std::to_string(result) + " " + Position(truth.type.shape, i) + ": " +
                Short(is[i]) + ", expected " + Short(should[i]);
  }
}

bool IsComparable(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kBool: return true;
    default: return false;
  }
}

// Whether it keeps state between calls.
bool IsStateful(const Module& module) {
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes)
      if (Info(node->op).effects == Effects::kStateful || Info(node->op).effects == Effects::kRandom)
        return true;
    const Uses uses(*f);
    for (ValueId v = 0; v < f->value_count(); ++v)
      if (f->value(v).is_variable && !uses.producer(v)) return true;
  }
  return false;
}

// The body with these constants, in f64 or f32.
using MakeBody = std::function<Result<Runnable>(const std::vector<Tensor>& constants, bool exact)>;

// Bounds the effect of f32 rounding on each result of the body. An f32 op, in any summation order, computes
// the exact result for slightly changed operands (backward error). So the body runs with operands and
// constants changed by the accumulated rounding error, and the change of its results is the bound: small
// where a gate is saturated, large where it is not. Signs are random: the maximum error in every operand is
// far above the actual f32 errors.
class Rounding {
 public:
  Rounding(const std::vector<Tensor>& constants, const MakeBody& make, uint64_t seed)
      : constants_(constants), make_(make), seed_(seed) {}

  std::vector<Slack> Of(const std::vector<Tensor>& inputs, const std::vector<Tensor>& truth, bool exact) {
    std::vector<Slack> out;
    for (const Tensor& t : truth) out.emplace_back(ToDoubles(t).size(), 0.0);
    const auto plain = make_(constants_, exact);
    if (!plain) return {};
    const double relative = RelativeError(Roundings(*plain->module, *plain->module->functions[0]));
    for (uint64_t k = 1; k <= kTimes; ++k) {
      const uint64_t seed = seed_ * 1009 + k * 101;
      auto body = make_(Off(constants_, relative, seed), exact);
      std::vector<Tensor> operands = Off(inputs, relative, seed + 50);
      if (exact)
        for (Tensor& t : operands) t = ToF64(t);
      if (!body) return {};
      if (const auto moved = body->Run(operands)) Widen(*moved, truth, out);
    }
    return out;
  }

 private:
  static constexpr uint64_t kTimes = 16;

  static std::vector<Tensor> Off(std::vector<Tensor> tensors, double relative, uint64_t seed) {
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = Nudged(tensors[i], relative, seed + i);
    return tensors;
  }

  static void Widen(const std::vector<Tensor>& moved, const std::vector<Tensor>& truth,
                    std::vector<Slack>& out) {
    for (size_t r = 0; r < out.size() && r < moved.size(); ++r) {
      if (moved[r].type.shape != truth[r].type.shape) continue;
      const auto is = ToDoubles(moved[r]), was = ToDoubles(truth[r]);
      for (size_t i = 0; i < out[r].size(); ++i)
        if (const double d = std::fabs(is[i] - was[i]); std::isfinite(d)) out[r][i] = std::max(out[r][i], d);
    }
  }

  const std::vector<Tensor>& constants_;
  const MakeBody& make_;
  uint64_t seed_;
};

class Comparison {
 public:
  Comparison(const std::vector<Tensor>& constants, const std::vector<bool>& used, Bound bound,
             const MakeBody& make, const Options& options)
      : constants_(constants),
        used_(used),
        bound_(bound),
        options_(options),
        rounding_(constants, make, options.seed) {}

  Result<Verdict> Run(Result<Runnable> body, Result<Runnable> truth, Result<Runnable> fused) {
    Verdict verdict;
    if (!body) return NotVerified(body.error().message);
    if (!fused) return NotVerified("the fused op does not run: " + fused.error().message);
    verdict.truth = truth ? "f64" : "f32";
    const Function& f = *fused->module->functions[0];
    for (size_t r = 0; r < f.outputs.size(); ++r) {
      const Type& type = f.value(f.outputs[r]).type;
      if (IsUsed(r) && !IsComparable(type.dtype))
        return NotVerified("result " + std::to_string(r) + " is " + ToString(type) +
                           ", which cannot be compared");
    }
    repeats_ = !IsStateful(*body->module);
    for (ValueClass c : ValueClasses(options_.all)) {
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < f.inputs.size(); ++i) {
        const Type& type = f.value(f.inputs[i]).type;
        const bool bound_in = i < constants_.size() && constants_[i].data;
        const bool told = i < options_.shapes.size() && options_.shapes[i].ranked();
        if (!bound_in && !told && !type.shape.ranked())
          return NotVerified("the rank of operand " + std::to_string(i) + " is unknown");
        const Type sized{type.dtype, Sized(told ? options_.shapes[i] : type.shape, options_.unknown_dim)};
        inputs.push_back(bound_in ? constants_[i] : MakeOperand(sized, c, options_.seed, i));
      }
      std::string name(Name(c));
      if (HasUnknown(f)) name += ", unknown sizes " + std::to_string(options_.unknown_dim);
      FUSEBOX_TRY(RunCase(name, inputs, *body, truth ? &*truth : nullptr, *fused, verdict));
    }
    Conclude(verdict);
    return verdict;
  }

 private:
  static Verdict NotVerified(std::string why) {
    Verdict out;
    out.why = std::move(why);
    return out;
  }
  static bool HasUnknown(const Function& f) {
    return std::any_of(f.inputs.begin(), f.inputs.end(),
                       [&](ValueId v) { return !f.value(v).type.shape.is_static(); });
  }
  Status RunCase(const std::string& name, const std::vector<Tensor>& inputs, Runnable& body, Runnable* truth,
                 Runnable& fused, Verdict& verdict) {
    Result<std::vector<Tensor>> plain = body.Run(inputs);
    if (!plain) {  // not an error of the rule: the composite does not accept these operands
      if (skipped_.empty()) skipped_ = "the body does not run on " + name + ": " + plain.error().message;
      return {};
    }
    std::vector<Tensor> exact_inputs;
    for (const Tensor& t : inputs) exact_inputs.push_back(ToF64(t));
    Result<std::vector<Tensor>> exact = truth ? truth->Run(exact_inputs) : plain;
    if (!exact) {  // an op without f64 kernel, reached only now
      verdict.truth = "f32";
      exact = plain;
    }
    const auto compare = [&](const std::vector<Slack>& slack) {
      Case out{.name = name, .passed = true};
      Result<std::vector<Tensor>> is = fused.Run(inputs);
      CompareAll(is, *exact, *plain, slack, out);
      if (is && out.passed && repeats_) {  // a stateless body returns the same for every call
        CompareAll(is = fused.Again(inputs), *exact, *plain, slack, out);
        if (!out.passed) out.where = "in a second call, " + out.where;
      }
      return out;
    };
    Case out = compare({});
    if (!out.passed && std::isfinite(out.worst))
      out = compare(rounding_.Of(inputs, *exact, truth && verdict.truth == "f64"));
    verdict.cases.push_back(std::move(out));
    return {};
  }

  bool IsUsed(size_t result) const { return result >= used_.size() || used_[result]; }

  void CompareAll(const Result<std::vector<Tensor>>& is, const std::vector<Tensor>& exact,
                  const std::vector<Tensor>& plain, const std::vector<Slack>& slack, Case& out) const {
    if (!is) {
      out.passed = false;
      out.where = "the fused op fails: " + is.error().message;
      return;
    }
    for (size_t r = 0; r < is->size() && r < exact.size(); ++r)
      if (IsUsed(r))
        CompareResult(r, (*is)[r], exact[r], plain[r], bound_, r < slack.size() ? slack[r] : Slack{}, out);
  }

  void Conclude(Verdict& verdict) const {
    using enum Verdict::Outcome;
    if (verdict.cases.empty()) {
      verdict.why = skipped_.empty() ? "nothing to compare" : skipped_;
      return;
    }
    verdict.outcome = kAgrees;
    const Case* worst = nullptr;
    for (const Case& c : verdict.cases)
      if (!c.passed && (!worst || c.worst > worst->worst)) worst = &c;
    if (!worst) return;
    verdict.outcome = kDiffers;
    verdict.why = worst->name + " values: " + worst->where + " (atol " + Short(bound_.atol) + ", rtol " +
                  Short(bound_.rtol) + ", seed " + std::to_string(options_.seed) + ")";
  }

  const std::vector<Tensor>& constants_;
  const std::vector<bool>& used_;
  Bound bound_;
  const Options& options_;
  Rounding rounding_;
  std::string skipped_;
  bool repeats_ = false;
};

}  // namespace

std::string Verdict::Summary() const {
  if (outcome == Outcome::kNotVerified) return "not verified: " + why;
  double worst = 0;
  for (const Case& c : cases) worst = std::max(worst, c.worst);
  const std::string how =
      "(" + truth + ", " + std::to_string(cases.size()) + " cases, worst " + Short(worst) + ")";
  return outcome == Outcome::kAgrees ? "agrees " + how : "differs " + how + ": " + why;
}

Result<Verdict> VerifyFused(const Module& module, const Function& body, const Module& scratch,
                            const Function& replacement, const std::vector<Tensor>& constants,
                            const std::vector<bool>& used_results, fbx_tolerance tolerance,
                            std::shared_ptr<Registry> registry, const Options& options) {
  const bool declared = tolerance.atol > 0 || tolerance.rtol > 0;
  const Bound bound{declared ? tolerance.atol : options.atol, declared ? tolerance.rtol : options.rtol};
  std::vector<bool> absent;
  std::vector<Tensor> present;
  Options of_present = options;
  of_present.shapes.clear();
  for (size_t i = 0; i < replacement.inputs.size(); ++i) {
    absent.push_back(replacement.value(replacement.inputs[i]).type.dtype == DType::kNone);
    if (absent[i]) continue;
    present.push_back(i < constants.size() ? constants[i] : Tensor{});
    of_present.shapes.push_back(i < options.shapes.size() ? options.shapes[i] : Shape());
  }
  // The body's operands: those in `present`, with absent ones in between.
  const MakeBody make = [&](const std::vector<Tensor>& tensors, bool exact) {
    std::vector<Tensor> all(absent.size());
    for (size_t i = 0, at = 0; i < absent.size(); ++i)
      if (!absent[i]) all[i] = tensors[at++];
    auto copy = CopyOf(module, body, all, absent);
    if (exact) RetypeToF64(*copy);
    return Runnable::Make(std::move(copy), registry);
  };
  return Comparison(present, used_results, bound, make, of_present)
      .Run(make(present, false), make(present, true),
           Runnable::Make(CopyOf(scratch, replacement, constants, absent), registry));
}

}  // namespace fusebox::verify
