// SPDX-License-Identifier: Apache-2.0
// NaN: docs/tensorflow-lite.md has the policy. Sizes around the widths of vectors; NaN first, in the middle
// and last. A case whose name starts with "NaN" runs on kernels only: other libraries have policies of their
// own.
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kNanHere = std::numeric_limits<float>::quiet_NaN(),
                kInfinite = std::numeric_limits<float>::infinity();

struct Spot {
  int64_t count, at;
  std::string name() const { return "NaN at " + std::to_string(at) + " of " + std::to_string(count); }
  // All `value`, with NaN at the spot.
  std::vector<float> Around(float value) const {
    std::vector<float> values(static_cast<size_t>(count), value);
    values[static_cast<size_t>(at)] = kNanHere;
    return values;
  }
};

std::vector<Spot> Spots() {
  std::vector<Spot> spots;
  for (const int64_t count : {1, 3, 4, 5, 8, 9, 16, 19, 35, 67})
    for (const int64_t at : std::set<int64_t>{0, count / 2, count - 1}) spots.push_back({count, at});
  return spots;
}

Data Row(const std::vector<float>& values) { return F32({static_cast<int64_t>(values.size())}, values); }

const Suite kElementwise("NaN of elements", [](Cases& c) {
  struct Function {
    const char* op;
    float x, y;  // elsewhere
    std::vector<Attr> attrs = {};
  };
  const Function functions[] = {{"SIGN", -3, -1},
                                {"ABS", -3, 3},
                                {"NEG", 2, -2},
                                {"FLOOR", 2.5f, 2},
                                {"CEIL", 2.5f, 3},
                                {"ROUND", 2.5f, 2},
                                {"SQRT", 4, 2},
                                {"SQUARE", 3, 9},
                                {"RELU", 7, 7},
                                {"RELU6", 7, 6},
                                {"RELU_N1_TO_1", 7, 1},
                                {"RELU_0_TO_1", 7, 1},
                                {"LEAKY_RELU", 7, 7, {{"alpha", 0.5}}},
                                {"ELU", 7, 7},
                                {"HARD_SWISH", 7, 7},
                                {"EXP", 0, 1},
                                {"LOG", 1, 0},
                                {"TANH", 0, 0},
                                {"LOGISTIC", 0, 0.5f},
                                {"GELU", 0, 0}};
  for (const Spot& s : Spots()) {
    for (const Function& f : functions)
      c.push_back({s.name(), f.op, {Row(s.Around(f.x))}, f.attrs, {Row(s.Around(f.y))}});
    for (const bool largest : {false, true}) {
      const char* op = largest ? "MAXIMUM" : "MINIMUM";
      const Data with = Row(s.Around(2)), one = F32({s.count}, {1}), y = Row(s.Around(largest ? 2 : 1));
      c.push_back({s.name() + ", left", op, {with, one}, {}, {y}});
      c.push_back({s.name() + ", right", op, {one, with}, {}, {y}});
      c.push_back({s.name() + ", both", op, {with, with}, {}, {with}});
      c.push_back(
          {s.name() + ", a scalar", op, {one, F32({}, {kNanHere})}, {}, {F32({s.count}, {kNanHere})}});
    }
    for (const char* activation : {"RELU", "RELU6", "RELU_N1_TO_1"})
      c.push_back({s.name() + ", " + activation,
                   "ADD",
                   {Row(s.Around(-9)), F32({s.count}, {1})},
                   {{"fused_activation_function", activation}},
                   {Row(s.Around(std::string_view(activation) == "RELU_N1_TO_1" ? -1 : 0))}});
  }
});

const Suite kReductions("NaN of reductions", [](Cases& c) {
  const Data zeroth = I32({1}, {0}), first = I32({1}, {1});
  for (const Spot& s : Spots()) {
    // Three rows, NaN in the second.
    std::vector<float> rows(static_cast<size_t>(3 * s.count), 1);
    rows[static_cast<size_t>(s.count + s.at)] = kNanHere;
    const Data x = F32({3, s.count}, rows);
    for (const char* op : {"REDUCE_MAX", "REDUCE_MIN", "SUM", "MEAN", "REDUCE_PROD"}) {
      const bool sums = std::string_view(op) == "SUM";
      const float row = sums ? static_cast<float>(s.count) : 1;
      c.push_back({s.name(), op, {Row(s.Around(1)), zeroth}, {}, {F32({}, {kNanHere})}});
      c.push_back({s.name() + ", rows", op, {x, first}, {}, {F32({3}, {row, kNanHere, row})}});
      c.push_back({s.name() + ", columns", op, {x, zeroth}, {}, {Row(s.Around(sums ? 3 : 1))}});
    }
    // A window of 2 x 2, NaN in each of its places.
    for (int64_t tap = 0; tap < 4; ++tap) {
      std::vector<float> image(static_cast<size_t>(4 * s.count), -kInfinite);
      image[static_cast<size_t>(tap * s.count + s.at)] = kNanHere;
      c.push_back({s.name() + ", place " + std::to_string(tap),
                   "MAX_POOL_2D",
                   {F32({1, 2, 2, s.count}, image)},
                   {{"padding", "VALID"},
                    {"stride_h", 1},
                    {"stride_w", 1},
                    {"filter_height", 2},
                    {"filter_width", 2}},
                   {F32({1, 1, 1, s.count}, s.Around(-kInfinite))}});
    }
    c.push_back({s.name(),
                 "UNSORTED_SEGMENT_MAX",
                 {F32({2, s.count},
                      [&] {
                        std::vector<float> both = s.Around(1);
                        both.resize(static_cast<size_t>(2 * s.count), 2);
                        return both;
                      }()),
                  I32({2}, {0, 0}), I32({}, {1})},
                 {},
                 {F32({1, s.count}, s.Around(2))}});
    c.push_back({s.name(),
                 "SOFTMAX",
                 {F32({1, s.count}, s.Around(1))},
                 {{"beta", 1.0}},
                 {F32({1, s.count}, {kNanHere})}});
  }
  const Data none = F32({2, 0}, {0});
  c.push_back({"of nothing", "REDUCE_MAX", {none, first}, {}, {F32({2}, {-kInfinite})}});
  c.push_back({"of nothing", "REDUCE_MIN", {none, first}, {}, {F32({2}, {kInfinite})}});
});

// As in TFLite: a later element must be larger, and nothing is larger than NaN.
const Suite kIndex("NaN of indices", [](Cases& c) {
  struct Row {
    std::vector<float> x;
    int32_t most, least;
  };
  for (const Row& row :
       {Row{{kNanHere, 3, 1}, 0, 0}, Row{{3, kNanHere, 1}, 0, 2}, Row{{1, 3, kNanHere}, 1, 0},
        Row{{1, kNanHere, 3}, 2, 0}, Row{{kNanHere, kNanHere}, 0, 0}}) {
    const Data x = F32({static_cast<int64_t>(row.x.size())}, row.x);
    const auto add = [&](const char* op, int32_t at) {
      c.push_back({"NaN", op, {x, I32({}, {0})}, {{"output_type", Dtype{FBX_I32}}}, {I32({}, {at})}});
    };
    add("ARG_MAX", row.most);
    add("ARG_MIN", row.least);
  }
});

}  // namespace
}  // namespace fusebox::conformance
