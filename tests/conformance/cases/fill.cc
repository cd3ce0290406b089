// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

void AddRanges(Cases& c) {
  c.push_back({"i32", "RANGE", {I32({}, {3}), I32({}, {10}), I32({}, {3})}, {}, {I32({3}, {3, 6, 9})}});
  c.push_back({"down, i64", "RANGE", {I64({}, {3}), I64({}, {0}), I64({}, {-2})}, {}, {I64({2}, {3, 1})}});
  c.push_back({"floats",
               "RANGE",
               {F32({}, {0}), F32({1}, {1}), F32({}, {0.25f})},
               {},
               {F32({4}, {0, 0.25f, 0.5f, 0.75f})}});
  c.push_back({.name = "a count that floats round down",
               .op = "RANGE",
               .operands = {F32({}, {0}), F32({}, {1}), F32({}, {0.01f})},
               .results = {Iota<float>({100}, 0, 0.01f)},
               .rtol = 1e-5,
               .also_f64 = false});
  c.push_back({"nothing", "RANGE", {F32({}, {1}), F32({}, {1}), F32({}, {1})}, {}, {F32({0}, {0})}});
  c.push_back({"extremes",
               "RANGE",
               {I32({}, {INT32_MIN}), I32({}, {INT32_MAX}), I32({}, {INT32_MAX})},
               {},
               {I32({3}, {INT32_MIN, -1, INT32_MAX - 1})}});
  c.push_back({.name = "step 0",
               .op = "RANGE",
               .operands = {I32({}, {0}), I32({}, {1}), I32({}, {0})},
               .error = "a range from 0 to 1 by 0"});
  c.push_back({.name = "away from the limit",
               .op = "RANGE",
               .operands = {I32({}, {0}), I32({}, {1}), I32({}, {-1})},
               .error = "a range from 0 to 1 by -1"});
  c.push_back({.name = "endless",
               .op = "RANGE",
               .operands = {F32({}, {0}), F32({}, {kInf}), F32({}, {1})},
               .error = "a range of inf"});
  c.push_back({.name = "NaN",
               .op = "RANGE",
               .operands = {F32({}, {0}), F32({}, {1}), F32({}, {kNan})},
               .error = "a range from 0"});
  c.push_back({.name = "too long",
               .op = "RANGE",
               .operands = {I64({}, {INT64_MIN}), I64({}, {INT64_MAX}), I64({}, {1})},
               .error = "2^40"});
}

void AddOneHots(Cases& c) {
  const Data on = F32({}, {5}), off = F32({}, {1}), depth = I32({}, {3});
  c.push_back({"last axis",
               "ONE_HOT",
               {I32({2}, {1, 2}), depth, on, off},
               {{"axis", -1}},
               {F32({2, 3}, {1, 5, 1, 1, 1, 5})}});
  c.push_back({"first axis, i64",
               "ONE_HOT",
               {I64({2}, {1, 2}), depth, on, off},
               {{"axis", 0}},
               {F32({3, 2}, {1, 1, 5, 1, 1, 5})}});
  c.push_back({"middle axis",
               "ONE_HOT",
               {I32({2, 2}, {0, 1, 1, 0}), I32({1}, {2}), Bool({}, {true}), Bool({}, {false})},
               {{"axis", 1}},
               {Bool({2, 2, 2}, {true, false, false, true, false, true, true, false})}});
  c.push_back({"outside is off",
               "ONE_HOT",
               {I32({3}, {-1, 3, 0}), depth, I32({}, {1}), I32({}, {0})},
               {{"axis", -1}},
               {I32({3, 3}, {0, 0, 0, 0, 0, 0, 1, 0, 0})}});
  c.push_back({"a scalar", "ONE_HOT", {I32({}, {2}), depth, on, off}, {{"axis", -1}}, {F32({3}, {1, 1, 5})}});
  c.push_back(
      {"depth 0", "ONE_HOT", {I32({2}, {0}), I32({}, {0}), on, off}, {{"axis", -1}}, {F32({2, 0}, {0})}});
  c.push_back({.name = "negative depth",
               .op = "ONE_HOT",
               .operands = {I32({1}, {0}), I32({}, {-1}), on, off},
               .attrs = {{"axis", -1}},
               .error = "a depth of -1"});
  c.push_back({.name = "axis out of range",
               .op = "ONE_HOT",
               .operands = {I32({1}, {0}), depth, on, off},
               .attrs = {{"axis", 2}},
               .error = "axis 2 is outside of rank 2"});
}

const Suite kSuite("fill", [](Cases& c) {
  c.push_back({"floats", "FILL", {I32({2}, {2, 3}), F32({}, {1.5f})}, {}, {F32({2, 3}, {1.5f})}});
  c.push_back({"i64, dims in i64", "FILL", {I64({1}, {2}), I64({}, {7})}, {}, {I64({2}, {7})}});
  c.push_back({"a scalar", "FILL", {I32({0}, {0}), Bool({}, {true})}, {}, {Bool({}, {true})}});
  c.push_back({"nothing", "FILL", {I32({2}, {0, 3}), F32({}, {1})}, {}, {F32({0, 3}, {0})}});
  c.push_back({.name = "negative",
               .op = "FILL",
               .operands = {I32({1}, {-1}), F32({}, {1})},
               .error = "a dimension of -1"});
  c.push_back({.name = "many values",
               .op = "FILL",
               .operands = {I32({1}, {2}), F32({2}, {1})},
               .error = "expected one value, got shape [2]"});
  c.push_back({.name = "overflow",
               .op = "FILL",
               .operands = {I64({2}, {INT64_MAX, 3}), F32({}, {1})},
               .error = "overflows"});
  c.push_back({"floats", "ZEROS_LIKE", {F32({2}, {kNan, 1})}, {}, {F32({2}, {0})}});
  c.push_back({"i64", "ZEROS_LIKE", {I64({1, 1}, {7})}, {}, {I64({1, 1}, {0})}});
  c.push_back({"bool, nothing", "ZEROS_LIKE", {Bool({0}, {true})}, {}, {Bool({0}, {false})}});
  AddRanges(c);
  AddOneHots(c);
  c.push_back({"a list", "MATRIX_DIAG", {F32({2}, {1, 2})}, {}, {F32({2, 2}, {1, 0, 0, 2})}});
  c.push_back({"a batch",
               "MATRIX_DIAG",
               {I32({2, 2}, {1, 2, 3, 4})},
               {},
               {I32({2, 2, 2}, {1, 0, 0, 2, 3, 0, 0, 4})}});
  c.push_back({"nothing", "MATRIX_DIAG", {F32({2, 0}, {0})}, {}, {F32({2, 0, 0}, {0})}});
  c.push_back({.name = "a scalar",
               .op = "MATRIX_DIAG",
               .operands = {F32({}, {1})},
               .error = "a scalar has no diagonal"});
});

std::vector<Attr> To(fbx_dtype from, fbx_dtype to) {
  return {{"in_data_type", Dtype{from}}, {"out_data_type", Dtype{to}}};
}

Data F16Bits(std::vector<int64_t> dims, const std::vector<uint16_t>& bits) {
  Data d = Values<uint16_t>(std::move(dims), bits);
  d.dtype = FBX_F16;
  return d;
}

const Suite kCasts("cast", [](Cases& c) {
  const auto add = [&c](std::string name, Data from, Data to) {
    const std::vector<Attr> attrs = To(from.dtype, to.dtype);
    c.push_back({.name = std::move(name),
                 .op = "CAST",
                 .operands = {std::move(from)},
                 .attrs = attrs,
                 .results = {std::move(to)},
                 .also_f64 = false});
  };
  add("truncates", F32({4}, {1.9f, -1.9f, 0.5f, -0.0f}), I32({4}, {1, -1, 0, 0}));
  add("saturates", F32({5}, {3e9f, -3e9f, kInf, -kInf, kNan}),
      I32({5}, {INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0}));
  add("saturates to i64", F64({3}, {1e19, -1e19, 9007199254740993.0}),
      I64({3}, {INT64_MAX, INT64_MIN, 9007199254740992}));
  add("saturates to u8", F32({4}, {-1, 255.9f, 256, 3.7f}), U8({4}, {0, 255, 255, 3}));
  add("integers wrap", I32({3}, {300, -1, 127}), I8({3}, {44, -1, 127}));
  add("i64 to i32", I64({2}, {1LL << 32, -5}), I32({2}, {0, -5}));
  add("i32 to f32", I32({2}, {-3, 16777217}), F32({2}, {-3, 16777216}));
  add("i64 to f64", I64({1}, {INT64_MIN}), F64({1}, {-9223372036854775808.0}));
  add("f32 to f64", F32({2}, {0.1f, kInf}), F64({2}, {static_cast<double>(0.1f), HUGE_VAL}));
  add("to bool", F32({4}, {0, -0.0f, 0.1f, kNan}), Bool({4}, {false, false, true, true}));
  add("of bool", Bool({2}, {true, false}), F32({2}, {1, 0}));
  add("of bool to i64", Bool({2}, {true, false}), I64({2}, {1, 0}));
  add("the same", I32({}, {7}), I32({}, {7}));
  add("nothing", F32({0}, {0}), I32({0}, {0}));
  add("to half",
      F32({9}, {1, -2, 65504, 65520, 5.9604645e-8f, 2.9802322e-8f, 1.0009766f, kInf, 6.1035156e-5f}),
      F16Bits({9}, {0x3c00, 0xc000, 0x7bff, 0x7c00, 0x0001, 0x0000, 0x3c01, 0x7c00, 0x0400}));
  add("to half, ties to even", F32({3}, {1.00048828125f, 1.00146484375f, -1.00146484375f}),
      F16Bits({3}, {0x3c00, 0x3c02, 0xbc02}));
  add("of half", F16Bits({7}, {0x3c00, 0x8000, 0x7bff, 0x0001, 0x03ff, 0xfc00, 0x7e00}),
      F32({7}, {1, -0.0f, 65504, 5.9604645e-8f, 6.097555e-5f, -kInf, kNan}));
  add("half to i32", F16Bits({1}, {0xc580}), I32({1}, {-5}));
  const auto bits = [](fbx_dtype dtype, const std::vector<uint16_t>& values) {
    Data d = F16Bits({static_cast<int64_t>(values.size())}, values);
    d.dtype = dtype;
    return d;
  };
  add("to bfloat16, ties to even",
      F32({10}, {1, -2, 1.00390625f, 1.01171875f, 1.0039064f, 3.4e38f, -kInf, 1e-40f, -0.0f, kNan}),
      bits(FBX_BF16, {0x3f80, 0xc000, 0x3f80, 0x3f82, 0x3f81, 0x7f80, 0xff80, 0x0001, 0x8000, 0x7fc0}));
  add("of bfloat16", bits(FBX_BF16, {0x3f80, 0x8000, 0x7f7f, 0x0001, 0xff80, 0x7f81}),
      F32({6}, {1, -0.0f, 3.3895314e38f, 9.1835e-41f, -kInf, kNan}));
  add("bfloat16 to half", bits(FBX_BF16, {0x3f80, 0x7f80, 0xc000}), bits(FBX_F16, {0x3c00, 0x7c00, 0xc000}));
  add("half to bfloat16", bits(FBX_F16, {0x3c01, 0x7c00, 0xc000}), bits(FBX_BF16, {0x3f80, 0x7f80, 0xc000}));
  add("bfloat16 to bool", bits(FBX_BF16, {0x8000, 0x3f80}), Bool({2}, {false, true}));
  add("bfloat16 to i32", bits(FBX_BF16, {0xc0b0, 0x7fc0}), I32({2}, {-5, 0}));
  add("i64 to bfloat16", I64({2}, {-3, 257}), bits(FBX_BF16, {0xc040, 0x4380}));
  add("f64 to bfloat16", F64({2}, {0.5, -1e300}), bits(FBX_BF16, {0x3f00, 0xff80}));
  add("bfloat16 to f64", bits(FBX_BF16, {0x3f00}), F64({1}, {0.5}));
  const int64_t many = 1027;  // several blocks and a part of one
  add("many to bfloat16", F32({many}, {1.5f}), bits(FBX_BF16, std::vector<uint16_t>(many, 0x3fc0)));
  add("many of bfloat16", bits(FBX_BF16, std::vector<uint16_t>(many, 0x3fc0)), F32({many}, {1.5f}));
  const auto packed = [](fbx_dtype dtype) { return Data{dtype, {5}, {0x80, 0x17, 0x0f}}; };
  add("of i4", packed(FBX_I4), I32({5}, {0, -8, 7, 1, -1}));
  add("i4 to floats", packed(FBX_I4), F32({5}, {0, -8, 7, 1, -1}));
  add("of u4", packed(FBX_U4), F32({5}, {0, 8, 7, 1, 15}));
  c.push_back({.name = "to i4",
               .op = "CAST",
               .operands = {I32({2}, {1, 2})},
               .attrs = To(FBX_I32, FBX_I4),
               .results = {packed(FBX_I4)},
               .refused = "a cast to i4 is unsupported"});
  c.push_back({.name = "no options: the result's own type",
               .op = "CAST",
               .operands = {F32({1}, {2.5f})},
               .results = {I32({1}, {2})},
               .also_f64 = false});
  c.push_back({.name = "options that cannot be: the result's own type",
               .op = "CAST",
               .operands = {I64({1}, {2})},
               .attrs = To(FBX_F32, FBX_F32),
               .results = {I32({1}, {2})}});
  c.push_back({.name = "to complex",
               .op = "CAST",
               .operands = {I32({1}, {2})},
               .attrs = To(FBX_I32, FBX_COMPLEX64),
               .results = {F32({1}, {2})},
               .refused = "complex64",
               .also_f64 = false});
});

}  // namespace
}  // namespace fusebox::conformance
