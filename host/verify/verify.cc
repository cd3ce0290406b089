// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "host/graph/values.h"
#include "host/verify/cases.h"
#include "host/verify/compare.h"
#include "host/verify/rounding.h"
#include "host/verify/runnable.h"
#include "host/verify/verify.h"

namespace fusebox::verify {
namespace {

Shape Sized(const Shape& shape, int64_t unknown) {
  if (!shape.ranked()) return shape;
  std::vector<int64_t> dims = shape.dims();
  for (int64_t& d : dims)
    if (d < 0) d = unknown;
  return Shape(std::move(dims));
}

// Largest error of the f32 body, relative to the results, that may excuse an error of the fused op.
constexpr double kMostOwnError = 0.01;

bool HasFloats(const Module& module) {
  for (const auto& f : module.functions)
    for (ValueId v = 0; v < f->value_count(); ++v)
      if (f->value(v).type.dtype == DType::kF32) return true;
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
      const auto is = ToDoubles(moved[r]);
      const auto was = ToDoubles(truth[r]);
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
    const bool integers = !HasFloats(*body->module);
    verdict.truth = integers ? "integers" : truth ? "f64" : "f32";
    const Function& f = *fused->module->functions[0];
    for (size_t r = 0; r < f.outputs.size(); ++r) {
      const Type& type = f.value(f.outputs[r]).type;
      if (IsUsed(r) && !IsComparable(type.dtype))
        return NotVerified("result " + std::to_string(r) + " is " + ToString(type) +
                           ", which cannot be compared");
    }
    random_ = IsRandom(*body->module);
    stateful_ = IsStateful(*body->module);
    const std::vector<ValueClass> classes = ValueClasses(options_.all);
    for (ValueClass c : classes) {
      if (!verdict.cases.empty() && Late()) break;
      std::vector<Tensor> inputs;
      size_t operands = 0;  // bytes
      for (size_t i = 0; i < f.inputs.size(); ++i) {
        const Type& type = f.value(f.inputs[i]).type;
        const bool bound_in = i < constants_.size() && constants_[i].data;
        const bool told = i < options_.shapes.size() && options_.shapes[i].ranked();
        if (!bound_in && !told && !type.shape.ranked())
          return NotVerified("the rank of operand " + std::to_string(i) + " is unknown");
        const Type sized{type.dtype, Sized(told ? options_.shapes[i] : type.shape, options_.unknown_dim)};
        operands += bound_in ? 0 : StorageSize(sized).value_or(0);
        if (operands > MemoryLimit())
          return NotVerified(fmt::format("operand {} is {}; the operands need more than {} bytes", i,
                                         ToString(sized), MemoryLimit()));
        inputs.push_back(bound_in
                             ? constants_[i]
                             : MakeOperand(sized, c, options_.seed, i, f.value(f.inputs[i]).quant.get()));
      }
      std::string name(Name(c));
      if (HasUnknown(f)) name += ", unknown sizes " + std::to_string(options_.unknown_dim);
      FUSEBOX_TRY(RunCase(name, inputs, *body, truth && !integers ? &*truth : nullptr, *fused, verdict));
    }
    verdict.shortened = Late();
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
      Skip("the body does not run on " + name, plain.error());
      return {};
    }
    std::vector<Tensor> exact_inputs;
    for (const Tensor& t : inputs) exact_inputs.push_back(ToF64(t));
    if (truth && Late()) {
      truth = nullptr;
      verdict.truth = "f32";
    }
    Result<std::vector<Tensor>> exact = truth ? truth->Run(exact_inputs) : plain;
    if (!exact) {  // an op without f64 kernel, reached only now
      verdict.truth = "f32";
      exact = plain;
    }
    // A stateless body returns the same for every call.
    Result<std::vector<Tensor>> next = plain;
    Result<std::vector<Tensor>> next_exact = exact;
    if (stateful_ && !random_) {
      next = next_exact = body.RunAgain(inputs);
      if (truth && verdict.truth == "f64") next_exact = truth->RunAgain(exact_inputs);
    }
    Result<std::vector<Tensor>> is;
    const auto compare = [&](const std::vector<Slack>& slack) {
      Case out{.name = name, .passed = true};
      is = fused.Run(inputs);
      CompareAll(is, *exact, *plain, slack, fused, out);
      if (is && out.passed && !random_ && next && next_exact && !Late()) {
        CompareAll(is = fused.RunAgain(inputs), *next_exact, *next, slack, fused, out);
        if (!out.passed) out.where = "in a second call, " + out.where;
      }
      return out;
    };
    Case out = compare({});
    if (!is && is.error().code == Code::kOutOfMemory) {
      Skip("the fused op does not run on " + name, is.error());
      return {};
    }
    if ((!out.passed || out.own > kMostOwnError) && std::isfinite(out.worst))
      out = compare(rounding_.Of(inputs, *exact, truth && verdict.truth == "f64"));
    verdict.cases.push_back(std::move(out));
    return {};
  }

  void Skip(const std::string& what, const Error& why) {
    if (skipped_.empty()) skipped_ = what + ": " + why.message;
  }

  bool Late() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return options_.seconds > 0 && spent.count() > options_.seconds;
  }

  bool IsUsed(size_t result) const { return result >= used_.size() || used_[result]; }

  void CompareAll(const Result<std::vector<Tensor>>& is, const std::vector<Tensor>& exact,
                  const std::vector<Tensor>& plain, const std::vector<Slack>& slack, const Runnable& fused,
                  Case& out) const {
    if (!is) {
      out.passed = false;
      out.where = "the fused op fails: " + is.error().message;
      return;
    }
    const Function& f = *fused.module->functions[0];
    for (size_t r = 0; r < is->size() && r < exact.size(); ++r)
      if (IsUsed(r))
        CompareResult(r, (*is)[r], exact[r], plain[r], bound_, r < slack.size() ? slack[r] : Slack{},
                      f.value(f.outputs[r]).quant != nullptr, out);
  }

  void Conclude(Verdict& verdict) const {
    using enum Verdict::Outcome;
    if (verdict.cases.empty()) {
      verdict.why = skipped_.empty() ? "nothing to compare" : skipped_;
      return;
    }
    const Case* worst = nullptr;
    const Case* excused = &verdict.cases[0];
    for (const Case& c : verdict.cases) {
      if (!c.passed && (!worst || c.worst > worst->worst)) worst = &c;
      // Extreme values make f32 inexact in many bodies; the other classes tell.
      if (c.own > excused->own && !c.name.starts_with(Name(ValueClass::kExtreme))) excused = &c;
    }
    verdict.unprovable = !worst && excused->own > kMostOwnError;
    if (verdict.unprovable)
      verdict.why =
          "the body's own f32 error is " + Short(excused->own) + " for " + excused->name + " values";
    else if (!worst) verdict.outcome = kAgrees;
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
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string skipped_;
  bool random_ = false;    // the body
  bool stateful_ = false;  // the body
};

}  // namespace

std::string Verdict::Summary() const {
  if (outcome == Outcome::kNotVerified) return (unprovable ? "cannot be verified: " : "not verified: ") + why;
  double worst = 0;
  double steps = -1;
  for (const Case& c : cases) {
    worst = std::max(worst, c.worst);
    steps = std::max(steps, c.steps);
  }
  std::string how = "(" + truth + ", " + std::to_string(cases.size()) + " cases, worst " + Short(worst);
  if (steps >= 0)
    how += steps == 0 ? ", quantized results bit for bit"
                      : ", quantized results within " + Short(steps) + (steps == 1 ? " step" : " steps");
  how += ")";
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
    if (exact) {
      RetypeToF64(*copy);
      RetypeWeightsToF64(*copy);
    }
    return Runnable::Make(std::move(copy), registry);
  };
  return Comparison(present, used_results, bound, make, of_present)
      .Run(make(present, false), make(present, true),
           Runnable::Make(CopyOf(scratch, replacement, constants, absent), registry));
}

}  // namespace fusebox::verify
