// SPDX-License-Identifier: Apache-2.0
// Models of one node for the runner: the conformance cases.
#include <algorithm>
#include <iterator>

#include "tests/conformance/delegates/single.h"
#include "tests/fuzz/seeds.h"

namespace fusebox::fuzz {

namespace {

bool IsGood(const conformance::Case& c) { return c.refused.empty() && c.error.empty(); }

// Types that XNNPACK computes with. Generated numbers rarely fit the bounds of a RANGE.
bool IsDelegable(const conformance::Case& c) {
  const auto known = [](const conformance::Data& data) {
    return data.dtype == FBX_F32 || data.dtype == FBX_I8 || data.dtype == FBX_U8;
  };
  return IsGood(c) && c.op != std::string_view("RANGE") && !c.operands.empty() && known(c.operands[0]) &&
         known(c.results[0]);
}

// The first `inputs` operands of the cases are inputs, the others constants.
std::vector<std::string> Files(bool (*has)(const conformance::Case&), size_t inputs, bool company) {
  std::vector<std::string> seeds;
  for (const conformance::Case& c : conformance::AllCases()) {
    std::string file = has(c) ? conformance::FileOf(c, inputs, company) : "";
    if (!file.empty()) seeds.push_back(std::move(file));
  }
  return seeds;
}

}  // namespace

// With constant operands: those that a kernel computes.
std::vector<std::string> ModelSeeds() { return Files(IsGood, 0, false); }

// With inputs as operands, whose numbers may not fit; those that are refused; and whole models.
std::vector<std::string> OtherModelSeeds() {
  std::vector<std::string> seeds = TfliteSeeds();
  std::ranges::move(Files(IsGood, SIZE_MAX, false), std::back_inserter(seeds));
  std::ranges::move(Files([](const conformance::Case& c) { return !IsGood(c); }, 0, false),
                    std::back_inserter(seeds));
  return seeds;
}

// With weights, and an addition behind the op: some ops are not worth a delegate alone.
std::vector<std::string> DelegatedSeeds() { return Files(IsDelegable, 1, true); }
std::vector<std::string> OtherDelegatedSeeds() { return Files(IsDelegable, SIZE_MAX, true); }

}  // namespace fusebox::fuzz
