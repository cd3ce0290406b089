// SPDX-License-Identifier: Apache-2.0
// Runs a conformance case as a model of one node through a delegate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/plugin/config.h"
#include "tests/conformance/case.h"

namespace fusebox {
class Registry;
}

namespace fusebox::conformance {

struct Answered {
  std::string error;   // not empty: the model could not be opened or run
  bool taken = false;  // the delegate ran it successfully
  std::string why;     // why it did not
  std::vector<Data> results;
};

// The case as a file; empty: not representable. The first `inputs` present operands are inputs, the others
// constants. `company`: with a following addition, if the result is f32.
std::string FileOf(const Case&, size_t inputs, bool company = false);

std::shared_ptr<Registry> RegistryWith(const std::string& plugin_folder);
// A case that the delegate declines alone is tried again with a following addition.
Answered RunThrough(const std::shared_ptr<Registry>&, const Config::Delegate& delegate, const Case&,
                    size_t inputs);

}  // namespace fusebox::conformance
