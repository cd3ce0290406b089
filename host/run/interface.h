// SPDX-License-Identifier: Apache-2.0
// The interface between a node and the functions that it calls.
#pragma once

#include "host/plan/plan.h"

namespace fusebox::run {

// Checks the number of operands and results, on which the executor depends.
Status CheckInterface(const Node& node, const plan::Unit& unit);

}  // namespace fusebox::run
