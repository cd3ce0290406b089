// SPDX-License-Identifier: Apache-2.0
// Functions that lose digits where they are written as their definition says: arguments near zero and large
// ones.
#include <cmath>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {
namespace {

SourceOp Of(const char* op, const std::vector<float>& x, double (*f)(double)) {
  std::vector<double> out;
  for (const float v : x) out.push_back(f(v));
  SourceOp source{op, {F({static_cast<int64_t>(x.size())}, x)}, out};
  source.digits = 1e-6;
  return source;
}

double Softplus(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }

}  // namespace

// Each result is to be right in its digits, not only near.
std::vector<SourceOp> FunctionCases() {
  const std::vector<float> any = {-80,   -3,    -0.5f, -1e-4f, -1e-9f, 0, 3e-10f,
                                  1e-7f, 1e-4f, 0.01f, 0.75f,  5,      80};
  const std::vector<float> above = {-1 + 1e-6f, -0.9f, -1e-4f, -1e-9f, 0,     3e-10f,   1e-7f,
                                    0.01f,      1,     1.5f,   4e7f,   1e30f, INFINITY, -1};
  const std::vector<float> within = {-1, -0.999f, -0.5f, -1e-4f, -1e-9f, 0, 1e-9f, 1e-7f, 0.3f, 0.9999f};
  const std::vector<float> wide = {-1e30f, -200,  -2,   -1e-4f, -1e-9f, 0,
                                   1e-25f, 1e-7f, 0.3f, 50,     1e30f,  INFINITY};
  const std::vector<float> falling = {-85, -20, -17, -10, -1, 0, 1e-5f, 3, 20, 100, INFINITY};
  return {
      Of("Log1p", above, [](double v) { return std::log1p(v); }),
      Of("Log1p", {-2, NAN}, [](double v) { return std::log1p(v); }),
      Of("Softplus", falling, Softplus),
      Of("Expm1", any, [](double v) { return std::expm1(v); }),
      Of("Expm1", {-INFINITY, INFINITY, NAN}, [](double v) { return std::expm1(v); }),
      Of("Sinh", any, [](double v) { return std::sinh(v); }),
      Of("Sinh", {89.2f, -INFINITY, INFINITY, NAN}, [](double v) { return std::sinh(v); }),
      Of("Cosh", any, [](double v) { return std::cosh(v); }),
      Of("Cosh", {89.2f, -INFINITY, INFINITY}, [](double v) { return std::cosh(v); }),
      Of("Asinh", wide, [](double v) { return std::asinh(v); }),
      Of("Acosh", {1, 1.0001f, 1.5f, 30, 1e30f, INFINITY, 0.5f}, [](double v) { return std::acosh(v); }),
      Of("Atanh", within, [](double v) { return std::atanh(v); }),
      Of("Atanh", {1, 2, INFINITY}, [](double v) { return std::atanh(v); }),
      Of("Asin", within, [](double v) { return std::asin(v); }),
      Of("Acos", within, [](double v) { return std::acos(v); }),
      Of("Acos", {1, -2}, [](double v) { return std::acos(v); }),
  };
}

}  // namespace fusebox::converter
