// SPDX-License-Identifier: Apache-2.0
// Models for tests of the page.
#pragma once

#include <memory>
#include <string>

#include "host/graph/graph.h"

namespace fusebox::cli::page {

// y = relu(x * w + b), a composite with a body, a WHILE with condition and body, and names that try to be
// HTML.
std::unique_ptr<Module> SmallModel();
// A chain of `nodes` additions with residual branches, in scopes of ten: "block_3/add_7".
std::unique_ptr<Module> ChainModel(int nodes);

// Below the folder of this process.
std::string PathOf(const std::string& name);
void Write(const Module& module, const std::string& path);
struct Finished {
  int status;
  std::string err;
};
// Runs the command with the built-in plugin only.
Finished Fusebox(const std::string& arguments);

inline constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>\"'&\xff";

}  // namespace fusebox::cli::page
