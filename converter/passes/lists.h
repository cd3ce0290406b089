// SPDX-License-Identifier: Apache-2.0
// Tensor lists: where they go, and what is said of those that cannot be lowered.
#pragma once

#include <functional>
#include <string>

#include "host/graph/graph.h"

namespace fusebox::converter {

inline constexpr const char* kBranches[] = {"then_subgraph_index", "else_subgraph_index"};
Function& Callee(const Module&, const Node&, const char* attr);

// Who reads a list, or what becomes of it: in its function, and behind loops and branches.
struct ListReader {
  const Function* f;
  const Node* node;
  int index;           // of the operand
  const Node* loop;    // the WHILE of the list's own function that leads here; null: none
  ValueId given_back;  // the list as it comes out of that loop
  bool certain;        // false: behind a branch that returns several lists, and this may be another
};
// Calls `read` for each. False: functions and lists are too deep in and behind each other.
bool VisitReaders(const Module&, const Function&, ValueId list,
                  const std::function<void(const ListReader&)>& read);

bool MayGrow(const Node& set_item);
bool Grows(const Module&, const Function&,
           ValueId list);  // whether what a list goes through may make it longer

// Of a TENSOR_LIST_SET_ITEM whose list is dense already: why its item has no place there. Else empty.
std::string WhyItemDiffers(const Function&, const Node&);
// The first list op that is left, and why; empty where there is none.
std::string WhyListsStay(const Module&);

}  // namespace fusebox::converter
