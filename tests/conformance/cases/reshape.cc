// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kSuite("reshape", [](Cases& c) {
  const Data six = Iota<float>({2, 3});
  const auto shaped = [](std::vector<int64_t> dims) { return Iota<float>(std::move(dims)); };

  c.push_back({"by an operand", "RESHAPE", {six, I32({2}, {3, 2})}, {}, {shaped({3, 2})}});
  c.push_back({"works out -1", "RESHAPE", {six, I32({3}, {1, -1, 2})}, {}, {shaped({1, 3, 2})}});
  c.push_back({"the operand is over the option",
               "RESHAPE",
               {six, I32({1}, {6})},
               {{"new_shape", Dims{3, 2}}},
               {shaped({6})}});
  c.push_back({"by an option", "RESHAPE", {six}, {{"new_shape", Dims{-1}}}, {shaped({6})}});
  c.push_back({"absent operand", "RESHAPE", {six, Absent()}, {{"new_shape", Dims{1, 6}}}, {shaped({1, 6})}});
  c.push_back({"to a scalar", "RESHAPE", {F32({1, 1}, {5}), I32({0}, {0})}, {}, {F32({}, {5})}});
  c.push_back({"to a scalar, as old files say it",
               "RESHAPE",
               {F32({1}, {5})},
               {{"new_shape", Dims{0}}},
               {F32({}, {5})}});
  c.push_back({"nothing", "RESHAPE", {F32({0, 3}, {0}), I32({2}, {5, 0})}, {}, {F32({5, 0}, {0})}});
  c.push_back(
      {"bool", "RESHAPE", {Bool({2}, {true, false}), I32({2}, {2, 1})}, {}, {Bool({2, 1}, {true, false})}});
  c.push_back({"shape in i64", "RESHAPE", {I64({2}, {1, 2}), I64({2}, {-1, 1})}, {}, {I64({2, 1}, {1, 2})}});
  c.push_back({"i8, scales apart by their last bit",
               "RESHAPE",
               {I8({2}, {1, -2}).Quantized(0.1f, 3), I32({2}, {2, 1})},
               {},
               {I8({2, 1}, {1, -2}).Quantized(std::nextafter(0.1f, 1.0f), 3)}});
  c.push_back({"i8, another scale",
               "RESHAPE",
               {I8({2}, {1, -2}).Quantized(0.1f, 3), I32({2}, {2, 1})},
               {},
               {I8({2, 1}, {1, -2}).Quantized(0.2f, 4)}});
  c.push_back({"i32 and a scale left behind",
               "RESHAPE",
               {I32({2}, {1, -2}).Quantized(0.1f, 0), I32({2}, {2, 1})},
               {},
               {I32({2, 1}, {1, -2})}});
  c.push_back({.name = "wrong count",
               .op = "RESHAPE",
               .operands = {six, I32({1}, {5})},
               .error = "cannot make [5] of 6 elements"});
  c.push_back({.name = "does not divide",
               .op = "RESHAPE",
               .operands = {six, I32({2}, {4, -1})},
               .error = "of 6 elements"});
  c.push_back({.name = "two stretches",
               .op = "RESHAPE",
               .operands = {six, I32({2}, {-1, -1})},
               .error = "more than one -1"});
  c.push_back({.name = "negative",
               .op = "RESHAPE",
               .operands = {six, I32({2}, {-2, -3})},
               .error = "a dimension of -2"});
  const auto beside_0 = [&](Dims from, std::vector<int32_t> to, Dims worked_out) {
    const auto rank = static_cast<int64_t>(to.size());
    c.push_back({"-1 beside 0 makes " + std::to_string(worked_out[0]) + ", " + std::to_string(worked_out[1]),
                 "RESHAPE",
                 {F32(std::move(from), {0}), I32({rank}, to)},
                 {},
                 {F32(worked_out, {0})}});
  };
  beside_0({0}, {0, -1}, {0, 1});
  beside_0({0, 3}, {-1, 0}, {3, 0});
  beside_0({2, 0, 5}, {0, -1}, {0, 10});
  beside_0({2, 0, 5}, {-1, 3, 0}, {3, 3, 0});  // 10 / 3
  beside_0({0, 3}, {0, 6, -1}, {0, 6, 0});     // 3 / 6
  beside_0({0, 3}, {4, -1}, {4, 0});
  c.push_back({.name = "-1 beside 0 of something",
               .op = "RESHAPE",
               .operands = {six, I32({2}, {0, -1})},
               .error = "cannot make [0,?] of 6 elements"});
  c.push_back({.name = "overflow",
               .op = "RESHAPE",
               .operands = {six, I32({4}, {1 << 30, 1 << 30, 1 << 30, 1 << 30})},
               .error = "overflows"});
  c.push_back({.name = "float shape",
               .op = "RESHAPE",
               .operands = {six, F32({1}, {6})},
               .error = "expected i32 or i64, got f32",
               .also_f64 = false});

  c.push_back({"all ones", "SQUEEZE", {shaped({1, 3, 1, 2})}, {}, {shaped({3, 2})}});
  c.push_back({"named, also from the back",
               "SQUEEZE",
               {shaped({1, 3, 1})},
               {{"squeeze_dims", Dims{-1}}},
               {shaped({1, 3})}});
  c.push_back({"to a scalar", "SQUEEZE", {F32({1, 1}, {7})}, {{"squeeze_dims", Dims{0, 1}}}, {F32({}, {7})}});
  c.push_back({"zero size stays", "SQUEEZE", {F32({1, 0}, {0})}, {}, {F32({0}, {0})}});
  c.push_back({.name = "not one",
               .op = "SQUEEZE",
               .operands = {six},
               .attrs = {{"squeeze_dims", Dims{1}}},
               .error = "cannot squeeze dimension 1 of [2,3]"});
  c.push_back({.name = "axis out of range",
               .op = "SQUEEZE",
               .operands = {six},
               .attrs = {{"squeeze_dims", Dims{-3}}},
               .error = "axis -3 is outside of rank 2"});

  c.push_back({"front", "EXPAND_DIMS", {six, I32({}, {0})}, {}, {shaped({1, 2, 3})}});
  c.push_back({"back", "EXPAND_DIMS", {six, I32({1}, {-1})}, {}, {shaped({2, 3, 1})}});
  c.push_back({"middle, i64", "EXPAND_DIMS", {six, I64({}, {-2})}, {}, {shaped({2, 1, 3})}});
  c.push_back({"a scalar", "EXPAND_DIMS", {I32({}, {4}), I32({}, {0})}, {}, {I32({1}, {4})}});
  c.push_back({.name = "axis out of range",
               .op = "EXPAND_DIMS",
               .operands = {six, I32({}, {3})},
               .error = "axis 3 is outside of rank 3"});

  c.push_back({"i32", "SHAPE", {six}, {{"out_type", Dtype{FBX_I32}}}, {I32({2}, {2, 3})}});
  c.push_back({"i64", "SHAPE", {six}, {{"out_type", Dtype{FBX_I64}}}, {I64({2}, {2, 3})}});
  c.push_back({"of a scalar", "SHAPE", {F32({}, {1})}, {}, {I32({0}, {0})}});
  c.push_back({"zero dims", "SHAPE", {F32({0, 4}, {1})}, {}, {I32({2}, {0, 4})}});
  c.push_back({.name = "as floats",
               .op = "SHAPE",
               .operands = {six},
               .attrs = {{"out_type", Dtype{FBX_F32}}},
               .error = "a shape cannot be f32"});
  c.push_back({"of a matrix", "RANK", {six}, {}, {I32({}, {2})}});
  c.push_back({"of a scalar", "RANK", {Bool({}, {true})}, {}, {I32({}, {0})}});
});

}  // namespace
}  // namespace fusebox::conformance
