// SPDX-License-Identifier: Apache-2.0
// What is left untranslated, told apart: causes, and what only follows from them because a type is not known.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "host/graph/graph.h"

namespace fusebox::converter {

// Of a list op that could not be lowered.
inline constexpr const char* kUnknownElement = "its element shape is not known";

// Why nodes of the functions that an entry reaches cannot be written.
using Problems = std::map<const Node*, std::string>;

// The nodes among `problems` that compute with a value whose type is unknown because of another one of them.
// An op that is `hopeless` (nothing translates it, whatever its operands are) is never one of these, and what
// it leaves unknown comes back in a loop; of any other only what runs behind it follows.
std::set<const Node*> Consequences(const Module&, const Function& entry, const Problems& problems,
                                   const std::function<bool(const Node&)>& hopeless);

}  // namespace fusebox::converter
