// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {

std::vector<SourceOp> ComposedCases() {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {-3, -0.5f, 0, 1e-4f, 0.75f, 5};
  const auto of = [&](double (*f)(double)) {
    std::vector<double> out;
    for (const float v : x) out.push_back(f(v));
    return out;
  };
  const Tensor m = F({2, 3}, {1, 2, 3, 4, 5, 6});
  return {
      {"OnesLike", {m}, {1, 1, 1, 1, 1, 1}},
      {"Erf", {F({6}, x)}, of([](double v) { return std::erf(v); })},
      {"Erfc", {F({6}, x)}, of([](double v) { return std::erfc(v); })},
      {"DivNoNan", {F({4}, {6, -1, 0, inf}), F({4}, {3, 0, 0, 0})}, {2, 0, 0, 0}, {}, 1, 2},
      {"DivNoNan", {I({2}, {7, 7}), I({2}, {2, 0})}, {3, 0}, {}, 1, 2},
      {"MulNoNan", {F({3}, {6, inf, -1}), F({3}, {3, 0, 0})}, {18, 0, 0}, {}, 1, 2},
      {"Mod", {I({3}, {7, -7, 6}), I({3}, {4, 4, 3})}, {3, -3, 0}, {}, 1, 2},
      {"TruncateMod", {I({3}, {7, -7, 6}), I({3}, {4, 4, 3})}, {3, -3, 0}, {}, 1, 2},
      {"TruncateDiv", {I({3}, {7, -7, 6}), I({3}, {4, 4, 3})}, {1, -1, 2}, {}, 1, 2},
      {"Select", {B({1, 0}), F({2, 2}, {1, 2, 3, 4}), F({2, 2}, {5, 6, 7, 8})}, {1, 2, 7, 8}, {}, 1, 3},
      {"Select", {B({1, 0}), F({2}, {1, 2}), F({2}, {3, 4})}, {1, 4}, {}, 1, 3},
      {"LinSpace", {F({}, {1}), F({}, {2}), I({}, {5})}, {1, 1.25, 1.5, 1.75, 2}, {}, 1, 2},
      {"LinSpace", {F({}, {1}), F({}, {2}), I({}, {1})}, {1}, {}, 1, 2},
      {"Roll", {m, I({1}, {1}), I({1}, {1})}, {3, 1, 2, 6, 4, 5}},
      {"Roll", {m, I({2}, {-1, -4}), I({2}, {0, -1})}, {5, 6, 4, 2, 3, 1}},
      {"Roll", {m, I({}, {6}), I({}, {1})}, {1, 2, 3, 4, 5, 6}},
      {"IsNan", {F({4}, {1, inf, -inf, nan})}, {0, 0, 0, 1}},
      {"IsInf", {F({4}, {1, inf, -inf, nan})}, {0, 1, 1, 0}},
      {"IsFinite", {F({4}, {1, inf, -inf, nan})}, {1, 0, 0, 0}},
      {"Tan", {F({6}, x)}, of([](double v) { return std::tan(v); })},
      {"Atan", {F({6}, x)}, of([](double v) { return std::atan(v); })},
      {"Xdivy", {F({3}, {6, 0, 0}), F({3}, {3, 0, inf})}, {2, 0, 0}, {}, 1, 2},
      {"Xlogy", {F({3}, {2, 0, 0}), F({3}, {1, 0, -1})}, {0, 0, 0}, {}, 1, 2},
      {"L2Loss", {F({2, 2}, {1, 2, 3, 4})}, {15}},
      {"TensorScatterAdd",
       {F({4}, {1, 2, 3, 4}), I({2, 1}, {1, 3}), F({2}, {10, 20})},
       {1, 12, 3, 24},
       {},
       1,
       3},
      {"TensorScatterUpdate",
       {F({4}, {1, 2, 3, 4}), I({2, 1}, {1, 3}), F({2}, {0, 20})},
       {1, 0, 3, 20},
       {},
       1,
       3},
      {"MatrixBandPart", {F({1, 2, 3}, {1, 2, 3, 4, 5, 6}), I({}, {0}), I({}, {-1})}, {1, 2, 3, 0, 5, 6}},
      {"MatrixBandPart", {F({3, 2}, {1, 2, 3, 4, 5, 6}), L({}, {1}), L({}, {0})}, {1, 0, 3, 4, 0, 6}},
  };
}

}  // namespace fusebox::converter
