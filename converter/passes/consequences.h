// SPDX-License-Identifier: Apache-2.0
// Separates causes of untranslated nodes from nodes that fail only because of an unknown type.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "host/graph/graph.h"

namespace fusebox::converter {

// Error for a list op that cannot be lowered.
inline constexpr const char* kUnknownElement = "its element shape is not known";

// Why nodes reachable from an entry cannot be written.
using Problems = std::map<const Node*, std::string>;

// The nodes in `problems` that only fail because another one leaves their operands' types unknown. `hopeless`
// nodes (no translation for any operands) are never consequences. What a hopeless node leaves unknown also
// propagates around loops; for other nodes it only propagates forward.
std::set<const Node*> Consequences(const Module&, const Function& entry, const Problems& problems,
                                   const std::function<bool(const Node&)>& hopeless);

}  // namespace fusebox::converter
