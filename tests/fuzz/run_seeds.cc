// SPDX-License-Identifier: Apache-2.0
// Models of one node for the runner: every conformance case, with its operands as constants and as inputs.
#include "tests/conformance/delegates/single.h"
#include "tests/fuzz/seeds.h"

namespace fusebox::fuzz {

std::vector<std::string> ModelSeeds() {
  std::vector<std::string> seeds;
  for (const conformance::Case& c : conformance::AllCases()) {
    for (const size_t inputs : {size_t{0}, c.operands.size()}) {
      std::string file = conformance::FileOf(c, inputs);
      if (!file.empty()) seeds.push_back(std::move(file));
    }
  }
  return seeds;
}

}  // namespace fusebox::fuzz
