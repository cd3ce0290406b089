// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kSuite("bits", [](Cases& c) {
  const auto bitcast = [&](const char* name, Data from, Data to) {
    c.push_back({.name = name,
                 .op = "BITCAST",
                 .operands = {std::move(from)},
                 .results = {std::move(to)},
                 .also_f64 = false});
  };
  bitcast("one for one", F32({2}, {1, -2}), I32({2}, {0x3F800000, -0x40000000}));
  bitcast("one for many", U32({2}, {0x04030201, 0x08070605}), U8({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  bitcast("many for one", U8({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), U32({2}, {0x04030201, 0x08070605}));
  bitcast("a scalar", I16({2}, {0, 1}), I32({}, {65536}));
  bitcast("nothing", F32({0, 2}, {0}), I64({0}, {0}));
  c.push_back({.name = "no last dimension to join",
               .op = "BITCAST",
               .operands = {U8({2, 3}, {0})},
               .results = {I32({2}, {0})},
               .error = "has no last dimension of 4"});
  c.push_back({.name = "a scalar to more",
               .op = "BITCAST",
               .operands = {U8({}, {0})},
               .results = {I32({}, {0})},
               .error = "has no last dimension of 4"});
  c.push_back({.name = "bytes that may be no bools",
               .op = "BITCAST",
               .operands = {U8({2}, {0})},
               .results = {Bool({2}, {false})},
               .refused = "u8 to bool"});
  c.push_back({.name = "strings",
               .op = "BITCAST",
               .operands = {Text({1}, {"a"})},
               .results = {U8({1}, {0})},
               .refused = "dtype string is unsupported"});

  const char* op = "RIGHT_SHIFT";
  c.push_back({"keeps the sign",
               op,
               {I32({4}, {-8, 8, -1, INT32_MAX}), I32({4}, {1, 2, 5, 30})},
               {},
               {I32({4}, {-4, 2, -1, 1})}});
  c.push_back({"too little and too much",
               op,
               {I8({4}, {-8, 8, -8, 8}), I8({4}, {-1, -128, 100, 127})},
               {},
               {I8({4}, {-8, 8, -1, 0})}});
  c.push_back({"unsigned", op, {U8({2}, {255, 255}), U8({2}, {4, 200})}, {}, {U8({2}, {15, 1})}});
  c.push_back({"by one number, 16 bits",
               op,
               {I16({2, 2}, {256, -256, 1, 0}), I16({1}, {4})},
               {},
               {I16({2, 2}, {16, -16, 0, 0})}});
  c.push_back({"64 bits", op, {I64({1}, {int64_t{-1} << 60}), I64({1}, {59})}, {}, {I64({1}, {-2})}});
  c.push_back({"nothing", op, {U32({0}, {0}), U32({1}, {1})}, {}, {U32({0}, {0})}});
  c.push_back({.name = "types differ",
               .op = op,
               .operands = {I32({1}, {1}), I8({1}, {1})},
               .results = {I32({1}, {0})},
               .error = "dtypes differ: i32 and i8"});
  c.push_back(
      {.name = "floats", .op = op, .operands = {F32({1}, {1}), F32({1}, {1})}, .refused = " is unsupported"});
});

}  // namespace
}  // namespace fusebox::conformance
