// SPDX-License-Identifier: Apache-2.0
#include "host/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "host/graph/values.h"

namespace fusebox::verify {

std::string Short(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

namespace {

bool Same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

double Distance(double a, double b) {
  if (Same(a, b)) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? INFINITY : d;
}

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

}  // namespace

void CompareResult(size_t result, const Tensor& fused, const Tensor& truth, const Tensor& body, Bound bound,
                   const Slack& slack, bool quantized, Case& out) {
  if (fused.type.shape != truth.type.shape) {
    out.passed = false;
    out.worst = INFINITY;
    out.where = "result " + std::to_string(result) + " is " + ToString(fused.type) + ", expected shape " +
                ToString(truth.type.shape);
    return;
  }
  const auto is = ToDoubles(fused);
  const auto should = ToDoubles(truth);
  const auto plain = ToDoubles(body);
  if (quantized) bound = {std::max(bound.atol, 1.0), 0};
  double sum = 0;
  const double own = OwnError(plain, should);
  const double scale = quantized ? 1 : ScaleOf(should);
  for (size_t i = 0; i < is.size() && i < should.size() && i < plain.size(); ++i) {
    if (!(std::isfinite(plain[i]) && std::isfinite(should[i])) && !Same(plain[i], should[i])) continue;
    const double error = Distance(is[i], should[i]);
    const bool finite = std::isfinite(should[i]);
    const double allowed =
        finite ? std::max(bound.atol + bound.rtol * std::fabs(should[i]), i < slack.size() ? slack[i] : 0)
               : 0;
    const bool excused = error > allowed && finite && error <= 2 * own;
    // Where f32 overflows and f64 does not, the body in f32 is the reference.
    const bool as_body =
        excused && Distance(is[i], plain[i]) <= bound.atol + bound.rtol * std::fabs(plain[i]);
    if (excused && !as_body) out.own = std::max(out.own, own / ScaleOf(should));
    const bool within = error <= allowed || excused;
    if (quantized) out.steps = std::max(out.steps, error);
    sum += error;
    // Reports the worst element, of the failing ones if any.
    const double scaled = as_body ? 0 : error / scale;
    if ((within && !out.passed) || (scaled <= out.worst && within == out.passed)) continue;
    out.worst = within == out.passed ? scaled : std::max(scaled, out.worst);
    out.passed &= within;
    out.where = "result " + std::to_string(result) + " " + Coordinates(truth.type.shape, i) + ": " +
                Short(is[i]) + ", expected " + Short(should[i]);
  }
  constexpr size_t kEnough = 32;  // for an average
  if (quantized && is.size() >= kEnough)
    out.mean_steps = std::max(out.mean_steps, sum / static_cast<double>(is.size()));
}

bool IsComparable(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kI4:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kBool: return true;
    default: return false;
  }
}

}  // namespace fusebox::verify
