// SPDX-License-Identifier: Apache-2.0
// One step of a cell with one input and one unit, and its equations in f64.
#include <cmath>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {
namespace {

double Gate(double v) { return 1 / (1 + std::exp(-v)); }

}  // namespace

std::vector<SourceOp> CellCases() {
  const double x = 0.5, c = 0.25, h = -0.75;
  const auto one = [](double v) { return F({1, 1}, {static_cast<float>(v)}); };
  std::vector<SourceOp> cases;

  // Columns i, candidate, f, o.
  const std::vector<Tensor> lstm = {
      one(x),      one(c),      one(h),      F({2, 4}, {1, 2, 0.5f, -1, 0.25f, -2, 1.5f, 3}),
      F({1}, {0}), F({1}, {0}), F({1}, {0}), F({4}, {0.125f, 0.5f, -0.25f, 1})};
  for (const double bias : {1.0, 0.0}) {
    const double i = Gate(x + 0.25 * h + 0.125), g = std::tanh(2 * x - 2 * h + 0.5);
    const double f = Gate(0.5 * x + 1.5 * h - 0.25 + bias), o = Gate(-x + 3 * h + 1);
    const double next = f * c + i * g, squashed = std::tanh(next);
    const double results[] = {i, next, f, o, g, squashed, squashed * o};
    for (size_t k = 0; k < std::size(results); ++k)
      cases.push_back(
          {"LSTMBlockCell", lstm, {results[k]}, A("forget_bias", bias, "cell_clip", -1.0), 7, 3, k});
  }

  const std::vector<Tensor> gru = {
      one(x),          one(h), F({2, 2}, {1, 2, 0.5f, -1}), F({2, 1}, {1.5f, -0.5f}), F({2}, {0.125f, 0.5f}),
      F({1}, {-0.25f})};
  const double r = Gate(x + 0.5 * h + 0.125), u = Gate(2 * x - h + 0.5);
  const double fresh = std::tanh(1.5 * x - 0.5 * r * h - 0.25);
  const double results[] = {r, u, fresh, u * h + (1 - u) * fresh};
  for (size_t k = 0; k < std::size(results); ++k)
    cases.push_back({"GRUBlockCell", gru, {results[k]}, {}, 4, 2, k});
  return cases;
}

}  // namespace fusebox::converter
