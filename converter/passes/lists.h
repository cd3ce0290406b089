// SPDX-License-Identifier: Apache-2.0
// What is said of tensor lists that cannot be lowered.
#pragma once

#include <string>

#include "host/graph/graph.h"

namespace fusebox::converter {

bool IsListOp(Op op);
// Of a TENSOR_LIST_SET_ITEM whose list is dense already: why its item has no place there. Else empty.
std::string WhyItemDiffers(const Function&, const Node&);
// The first list op that is left, and why; empty where there is none.
std::string WhyListsStay(const Module&);

}  // namespace fusebox::converter
