// SPDX-License-Identifier: Apache-2.0
// A conformance case as a model of one node, run through a delegate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/case.h"

namespace fusebox {
class Registry;
}

namespace fusebox::conformance {

struct Answered {
  std::string error;   // not empty: the model could not be opened or run
  bool taken = false;  // the delegate ran it, to the end
  std::string why;     // it did not
  std::vector<Data> results;
};

std::shared_ptr<Registry> RegistryWith(const std::string& plugin_folder);
// The first `inputs` operands that are there become inputs of the model, the others constants. What a delegate would not take
// alone is tried again with an addition behind it.
Answered RunThrough(const std::shared_ptr<Registry>&, const std::string& delegate, const Case&,
                    size_t inputs);

}  // namespace fusebox::conformance
