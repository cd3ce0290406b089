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

// The case as a file; empty: it cannot be written as one. Its first `inputs` operands that are there are
// inputs, the others constants.
std::string FileOf(const Case&, size_t inputs);

std::shared_ptr<Registry> RegistryWith(const std::string& plugin_folder);
// What a delegate would not take alone is tried again with an addition behind it.
Answered RunThrough(const std::shared_ptr<Registry>&, const std::string& delegate, const Case&,
                    size_t inputs);

}  // namespace fusebox::conformance
