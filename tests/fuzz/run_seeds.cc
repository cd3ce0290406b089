// SPDX-License-Identifier: Apache-2.0
// Models of one node for the runner: the conformance cases.
#include "tests/conformance/delegates/single.h"
#include "tests/fuzz/seeds.h"

namespace fusebox::fuzz {

// With constant operands: those that a kernel computes.
std::vector<std::string> ModelSeeds() {
  std::vector<std::string> seeds;
  for (const conformance::Case& c : conformance::AllCases()) {
    std::string file = c.refused.empty() && c.error.empty() ? conformance::FileOf(c, 0) : "";
    if (!file.empty()) seeds.push_back(std::move(file));
  }
  return seeds;
}

// With inputs as operands, whose numbers may not fit; those that are refused; and whole models.
std::vector<std::string> OtherModelSeeds() {
  std::vector<std::string> seeds = TfliteSeeds();
  for (const conformance::Case& c : conformance::AllCases()) {
    const bool good = c.refused.empty() && c.error.empty();
    std::string file = conformance::FileOf(c, good ? c.operands.size() : 0);
    if (!file.empty()) seeds.push_back(std::move(file));
  }
  return seeds;
}

}  // namespace fusebox::fuzz
