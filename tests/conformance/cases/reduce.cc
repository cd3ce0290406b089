// SPDX-License-Identifier: Apache-2.0
// Reductions, running totals and extremes along axes.
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The definition, in double: every input element goes to the result element that its kept indices name.
void Reduces(Cases& c, const char* op, std::vector<int64_t> dims, std::vector<int32_t> axes, bool keep) {
  const Data x = Random<float>(dims, 5);
  std::vector<bool> gone(dims.size());
  for (const int32_t a : axes)
    gone[static_cast<size_t>(a < 0 ? a + static_cast<int32_t>(dims.size()) : a)] = true;
  std::vector<int64_t> out;
  int64_t folded = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!gone[d]) out.push_back(dims[d]);
    else if (keep) out.push_back(1);
    if (gone[d]) folded *= dims[d];
  }
  const std::string name = op;
  std::vector<double> totals(static_cast<size_t>(F32(out, {0}).count()), name == "REDUCE_PROD"  ? 1
                                                                         : name == "REDUCE_MAX" ? -1e9
                                                                         : name == "REDUCE_MIN" ? 1e9
                                                                                                : 0);
  const std::vector<float> values = As<float>(x);
  for (size_t i = 0; i < values.size(); ++i) {
    size_t at = 0, step = 1, rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= static_cast<size_t>(dims[d])) {
      if (gone[d]) continue;
      at += rest % static_cast<size_t>(dims[d]) * step;
      step *= static_cast<size_t>(dims[d]);
    }
    double& t = totals[at];
    const double v = values[i];
    if (name == "REDUCE_PROD") t *= v;
    else if (name == "REDUCE_MAX") t = std::max(t, v);
    else if (name == "REDUCE_MIN") t = std::min(t, v);
    else t += v;
  }
  std::vector<float> want;
  for (const double t : totals)
    want.push_back(static_cast<float>(name == "MEAN" ? t / static_cast<double>(folded) : t));
  c.push_back({.name = std::to_string(axes.size()) + " axes" + (keep ? ", kept" : ""),
               .op = op,
               .operands = {x, I32({static_cast<int64_t>(axes.size())}, axes)},
               .attrs = {{"keep_dims", keep}},
               .results = {F32(out, want)},
               .atol = 1e-6,
               .rtol = 2e-6});
}

const Suite kReduce("reduce", [](Cases& c) {
  for (const char* op : {"SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"}) {
    Reduces(c, op, {3, 4, 5}, {0}, false);
    Reduces(c, op, {3, 4, 5}, {1}, true);
    Reduces(c, op, {3, 4, 5}, {-1}, false);
    Reduces(c, op, {3, 4, 5}, {0, 2}, true);
    Reduces(c, op, {3, 4, 5}, {2, 1, 0}, false);
    Reduces(c, op, {2, 7, 9, 3}, {1, 2}, false);
    Reduces(c, op, {2, 3, 2, 3, 2}, {1, -2, 1}, false);
    Reduces(c, op, {1, 19}, {-1}, true);
    Reduces(c, op, {2, 3, 300}, {1}, false);
    c.push_back({.name = "a scalar axis",
                 .op = op,
                 .operands = {F32({2, 2}, {1, 1, 1, 1}), I32({}, {0})},
                 .results = {F32({2}, {std::string(op) == "SUM" ? 2.0f : 1.0f})}});
    c.push_back({.name = "a scalar",
                 .op = op,
                 .operands = {F32({}, {3}), I32({1}, {-1})},
                 .results = {F32({}, {3})}});
    c.push_back({.name = "no axes",
                 .op = op,
                 .operands = {F32({2}, {3, 4}), I32({0}, {0})},
                 .results = {F32({2}, {3, 4})}});
    c.push_back({.name = "an axis too large",
                 .op = op,
                 .operands = {F32({2}, {1}), I32({1}, {1})},
                 .error = "axis 1 is outside"});
    c.push_back({.name = "an axis too small",
                 .op = op,
                 .operands = {F32({2}, {1}), I32({1}, {-2})},
                 .error = "axis -2 is outside"});
    c.push_back({.name = "float axes",
                 .op = op,
                 .operands = {F32({2}, {1}), F32({1}, {1})},
                 .error = "axes of dtype"});
    c.push_back({.name = "quantized",
                 .op = op,
                 .operands = {I8({2}, {1}).Quantized(1, 0), I32({1}, {0})},
                 .refused = "i8"});
    c.push_back({.name = "an empty result",
                 .op = op,
                 .operands = {F32({0, 2}, {0}), I32({1}, {1})},
                 .results = {F32({0}, {0})}});
  }
  const Data none = F32({0, 2}, {0}), zeroth = I32({1}, {0});
  c.push_back({.name = "of nothing", .op = "SUM", .operands = {none, zeroth}, .results = {F32({2}, {0})}});
  c.push_back(
      {.name = "of nothing", .op = "REDUCE_PROD", .operands = {none, zeroth}, .results = {F32({2}, {1})}});
  c.push_back(
      {.name = "of nothing", .op = "MEAN", .operands = {none, zeroth}, .results = {F32({2}, {kNaN})}});
  c.push_back({.name = "of no integers",
               .op = "MEAN",
               .operands = {I32({0, 2}, {0}), zeroth},
               .results = {I32({2}, {0})},
               .error = "mean of no"});
  c.push_back({.name = "of nothing along the last axis",
               .op = "SUM",
               .operands = {F32({2, 0}, {0}), I32({1}, {1})},
               .results = {F32({2}, {0})}});
  c.push_back({.name = "i32 is cut",
               .op = "MEAN",
               .operands = {I32({2, 2}, {-3, 2147483647, -4, 2147483646}), zeroth},
               .results = {I32({2}, {-3, 2147483646})}});
  c.push_back({.name = "i32 along the last axis",
               .op = "MEAN",
               .operands = {I32({2, 2}, {-3, -4, 2147483647, 2147483646}), I32({1}, {1})},
               .results = {I32({2}, {-3, 2147483646})}});
  c.push_back({.name = "i64",
               .op = "SUM",
               .operands = {I64({3}, {1ll << 40, 2, 3}), zeroth},
               .results = {I64({}, {(1ll << 40) + 5})}});
  c.push_back({.name = "i32 wraps",
               .op = "SUM",
               .operands = {I32({2}, {2147483647, 1}), zeroth},
               .results = {I32({}, {-2147483647 - 1})}});
  const Data b = Bool({2, 3}, {true, false, true, false, false, false}),
             t = Bool({2, 2}, {true, true, true, false});
  c.push_back({.name = "rows",
               .op = "REDUCE_ANY",
               .operands = {b, I32({1}, {1})},
               .results = {Bool({2}, {true, false})}});
  c.push_back({.name = "columns",
               .op = "REDUCE_ANY",
               .operands = {b, zeroth},
               .attrs = {{"keep_dims", true}},
               .results = {Bool({1, 3}, {true, false, true})}});
  c.push_back({.name = "rows",
               .op = "REDUCE_ALL",
               .operands = {t, I32({1}, {1})},
               .results = {Bool({2}, {true, false})}});
  c.push_back({.name = "nothing",
               .op = "REDUCE_ALL",
               .operands = {Bool({0}, {true}), zeroth},
               .results = {Bool({}, {true})}});
  c.push_back({.name = "i32", .op = "REDUCE_ANY", .operands = {I32({1}, {1}), zeroth}, .refused = "i32"});
});

const Suite kCumsum("cumsum", [](Cases& c) {
  const Data x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto add = [&](const char* name, int32_t axis, bool exclusive, bool reverse, std::vector<float> y) {
    c.push_back({.name = name,
                 .op = "CUMSUM",
                 .operands = {x, I32({}, {axis})},
                 .attrs = {{"exclusive", exclusive}, {"reverse", reverse}},
                 .results = {F32({2, 3}, y)}});
  };
  add("rows", 1, false, false, {1, 3, 6, 4, 9, 15});
  add("columns", 0, false, false, {1, 2, 3, 5, 7, 9});
  add("exclusive", -1, true, false, {0, 1, 3, 0, 4, 9});
  add("reverse", 1, false, true, {6, 5, 3, 15, 11, 6});
  add("exclusive and reverse", 1, true, true, {5, 3, 0, 11, 6, 0});
  add("columns, exclusive and reverse", -2, true, true, {4, 5, 6, 0, 0, 0});
  c.push_back({.name = "i32",
               .op = "CUMSUM",
               .operands = {I32({3}, {1, 2, 3}), I32({1}, {0})},
               .results = {I32({3}, {1, 3, 6})}});
  c.push_back({.name = "nothing",
               .op = "CUMSUM",
               .operands = {F32({2, 0}, {0}), I32({}, {1})},
               .results = {F32({2, 0}, {0})}});
  c.push_back({.name = "axis", .op = "CUMSUM", .operands = {x, I32({}, {2})}, .error = "axis 2"});
  c.push_back(
      {.name = "a scalar", .op = "CUMSUM", .operands = {F32({}, {1}), I32({}, {0})}, .error = "scalar"});
});

const Suite kArg("arg_min_max", [](Cases& c) {
  const Data x = F32({2, 3}, {1, 5, 5, -1, -7, -7});
  c.push_back({.name = "the first of equals",
               .op = "ARG_MAX",
               .operands = {x, I32({}, {1})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .results = {I32({2}, {1, 0})}});
  c.push_back({.name = "the first of equals",
               .op = "ARG_MIN",
               .operands = {x, I32({}, {-1})},
               .attrs = {{"output_type", Dtype{FBX_I64}}},
               .results = {I64({2}, {0, 1})}});
  c.push_back({.name = "columns",
               .op = "ARG_MAX",
               .operands = {x, I64({1}, {0})},
               .attrs = {{"output_type", Dtype{FBX_I64}}},
               .results = {I64({3}, {0, 0, 0})}});
  c.push_back({.name = "the middle axis",
               .op = "ARG_MAX",
               .operands = {I32({2, 2, 2}, {1, 9, 3, 4, 8, 0, 8, 7}), I32({}, {1})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .results = {I32({2, 2}, {1, 0, 0, 1})}});
  c.push_back({.name = "u8",
               .op = "ARG_MAX",
               .operands = {U8({3}, {3, 200, 100}), I32({}, {0})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .results = {I32({}, {1})}});
  c.push_back({.name = "nothing else",
               .op = "ARG_MAX",
               .operands = {F32({0, 3}, {0}), I32({}, {1})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .results = {I32({0}, {0})}});
  c.push_back({.name = "of nothing",
               .op = "ARG_MAX",
               .operands = {F32({3, 0}, {0}), I32({}, {1})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .error = "no elements"});
  c.push_back({.name = "axis",
               .op = "ARG_MIN",
               .operands = {x, I32({}, {-3})},
               .attrs = {{"output_type", Dtype{FBX_I32}}},
               .error = "axis -3"});
  c.push_back({.name = "float index", .op = "ARG_MIN", .operands = {x, I32({}, {0})}, .refused = "f32"});
});

}  // namespace
}  // namespace fusebox::conformance
