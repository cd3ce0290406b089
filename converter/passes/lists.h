// SPDX-License-Identifier: Apache-2.0
// Tensor lists: where they go, and what is said of those that cannot be lowered.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "host/graph/graph.h"

namespace fusebox::converter {

inline constexpr const char* kBranches[] = {"then_subgraph_index", "else_subgraph_index"};
Function& Callee(const Module&, const Node&, const char* attr);

// The lists of functions that a walk has been at: they may meet again on many ways.
inline constexpr int kDeepestList = 16;  // functions and lists, one in or behind the other
using SeenLists = std::set<std::pair<const Function*, ValueId>>;

bool MayGrow(const Node& set_item);
bool Grows(const Module&, const Function&,
           ValueId list);  // whether what a list goes through may make it longer

// Of a TENSOR_LIST_SET_ITEM whose list is dense already: why its item has no place there. Else empty.
std::string WhyItemDiffers(const Function&, const Node&);
// The first list op that is left, and why; empty where there is none.
std::string WhyListsStay(const Module&);

}  // namespace fusebox::converter
