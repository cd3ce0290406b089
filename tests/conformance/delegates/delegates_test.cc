// SPDX-License-Identifier: Apache-2.0
// Every case through every delegate: what it takes must come out right, and it must take something of what it
// is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "tests/conformance/cases/harness.h"
#include "tests/conformance/delegates/single.h"

namespace fusebox::conformance {
namespace {

struct Delegate {
  std::string name, plugin_folder;
  std::set<std::string> takes;  // of each of these ops at least one case
  std::string placement = {};   // option of the delegate, if it has one
  double rtol = 0;              // where it may be less exact than the case asks for
  int steps = 0;                // the same for integers: how far off
  double hybrid = 0;  // the same where floats meet 8-bit weights, of the largest result: inputs are quantized
                      // by another rule
  std::set<std::string> finite_only = {};  // what these make of infinities and NaN is their own
  std::string nan = {};                    // why cases of NaN are left out
  struct Skip {
    std::string op, name, why;  // an empty name means all of the op
  };
  std::vector<Skip> skips = {};
};

const std::vector<Delegate>& Delegates() {
  static const std::vector<Delegate> all = {
      {.name = "toy", .plugin_folder = FUSEBOX_TOYS, .takes = {"ADD", "MUL"}},
#ifdef FUSEBOX_XNNPACK
      {.name = "xnnpack",
       .plugin_folder = FUSEBOX_XNNPACK,
       .takes = {"ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DIV",
                 "FULLY_CONNECTED", "LOGISTIC", "MAX_POOL_2D", "MAXIMUM", "MINIMUM", "MUL", "PAD", "SOFTMAX",
                 "SUB", "TANH"},
       .placement = "all",
       .rtol = 1e-4,
       .steps = 1,
       .hybrid = 0.01,
       .finite_only = {"QUANTIZE"},
       .nan = "XNNPACK's own, which depends on the CPU",
       .skips = {{"FULLY_CONNECTED", "hybrid, NaN in one row", "NaN becomes a byte in XNNPACK"}}},
#endif
  };
  return all;
}

struct Pair {
  Delegate delegate;
  std::string op;
};

std::vector<Pair> Pairs() {
  std::set<std::string> ops;
  for (const Case& c : AllCases()) ops.insert(c.op);
  std::vector<Pair> pairs;
  for (const Delegate& d : Delegates())
    for (const std::string& op : ops) pairs.push_back({d, op});
  return pairs;
}

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.delegate.name << " " << pair.op; }

std::string WhySkipped(const Delegate& delegate, const Case& c) {
  for (const Delegate::Skip& skip : delegate.skips)
    if (skip.op == c.op && (skip.name.empty() || skip.name == c.name)) return skip.why;
  return c.name.starts_with("NaN") ? delegate.nan : "";
}

// The expected bytes in place of those that an operand which is not finite made.
void ForgetTheUnusual(const Case& c, std::vector<uint8_t>& got) {
  if (c.operands[0].dtype != FBX_F32) return;
  const std::vector<float> values = As<float>(c.operands[0]);
  const size_t size = got.size() / std::max<size_t>(values.size(), 1);
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      std::copy_n(c.results[0].bytes.begin() + static_cast<ptrdiff_t>(i * size), size,
                  got.begin() + static_cast<ptrdiff_t>(i * size));
}

void ExpectResults(const Delegate& delegate, const Case& c, Answered answer) {
  if (answer.taken && delegate.finite_only.contains(c.op)) ForgetTheUnusual(c, answer.results[0].bytes);
  Case tolerant = c;
  for (size_t i = 0; i < c.results.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    EXPECT_EQ(answer.results[i].dims, c.results[i].dims);
    ASSERT_EQ(answer.results[i].bytes.size(), c.results[i].bytes.size());
    const fbx_dtype dtype = c.results[i].dtype;
    const bool floats = dtype == FBX_F32 || dtype == FBX_F64 || dtype == FBX_F16;
    if (answer.taken && floats) {
      tolerant.rtol = std::max(c.rtol, delegate.rtol);
      tolerant.atol = std::max(c.atol, delegate.rtol);
      if (c.name.starts_with("hybrid") && dtype == FBX_F32) {
        for (const float value : As<float>(c.results[i]))
          tolerant.atol = std::max(tolerant.atol, delegate.hybrid * std::abs(static_cast<double>(value)));
      }
    } else if (answer.taken && dtype != FBX_BOOL) {
      tolerant.atol = std::max(c.atol, static_cast<double>(delegate.steps));
    }
    ExpectValues(c.results[i], answer.results[i].bytes.data(), tolerant);
  }
}

class Delegated : public testing::TestWithParam<Pair> {};

TEST_P(Delegated, Holds) {
  const auto& [delegate, op] = GetParam();
  const auto registry = RegistryWith(delegate.plugin_folder);
  Config::Delegate used{delegate.name};
  if (!delegate.placement.empty()) used.options.Set("placement", delegate.placement);
  ASSERT_NE(registry, nullptr);
  int taken = 0, left = 0;
  std::set<std::string> reasons;
  for (const Case& c : AllCases()) {
    if (c.op != op || !c.error.empty() || !c.refused.empty()) continue;
    if (const std::string why = WhySkipped(delegate, c); !why.empty()) {
      std::cout << "skipped: " << op << ": " << c.name << ": " << why << "\n";
      continue;
    }
    const auto operands = static_cast<size_t>(std::count_if(
        c.operands.begin(), c.operands.end(), [](const Data& d) { return d.dtype != FBX_DTYPE_NONE; }));
    for (const size_t inputs : {size_t{1}, operands}) {
      SCOPED_TRACE(c.op + ": " + c.name + ", " + std::to_string(inputs) + " inputs");
      const Answered answer = RunThrough(registry, used, c, inputs);
      ASSERT_EQ(answer.error, "");
      ExpectResults(delegate, c, answer);
      (answer.taken ? taken : left) += 1;
      if (!answer.taken) reasons.insert(answer.why);
      if (operands <= 1) break;
    }
  }
  std::cout << delegate.name << ": " << op << ": " << taken << " taken, " << left << " left to the kernels\n";
  for (const std::string& reason : reasons) std::cout << "  " << reason << "\n";
  EXPECT_TRUE(taken > 0 || !delegate.takes.contains(op)) << "it takes no case of " << op;
}

INSTANTIATE_TEST_SUITE_P(Every, Delegated, testing::ValuesIn(Pairs()),
                         [](const auto& info) { return info.param.delegate.name + "_" + info.param.op; });

}  // namespace
}  // namespace fusebox::conformance
