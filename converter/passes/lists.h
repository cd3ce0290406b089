// SPDX-License-Identifier: Apache-2.0
// Readers of tensor lists, and errors for lists that cannot be lowered.
#pragma once

#include <functional>
#include <string>

#include "host/graph/graph.h"

namespace fusebox::converter {

inline constexpr const char* kBranches[] = {"then_subgraph_index", "else_subgraph_index"};
Function& Callee(const Module&, const Node&, const char* attr);

// A reader of a list, in its function or through loops and branches.
struct ListReader {
  const Function* f;
  const Node* node;
  int index;           // operand index
  const Node* loop;    // the WHILE of the list's function on the way; null: none
  ValueId given_back;  // the list as a result of that loop
  bool certain;        // false: may be another list of a branch with several list results
};
// Calls `read` for each reader. Returns false if functions nest too deeply.
bool VisitReaders(const Module&, const Function&, ValueId list,
                  const std::function<void(const ListReader&)>& read);

bool MayGrow(const Node& set_item);
bool Grows(const Module&, const Function&,
           ValueId list);  // whether a list may grow on its way

// Returns why the item of a TENSOR_LIST_SET_ITEM does not fit its dense list, or an empty string if it fits.
std::string WhyItemDiffers(const Function&, const Node&);
// Returns the first list op that was not lowered and the reason, or an empty string if there is none.
std::string WhyListsStay(const Module&);

}  // namespace fusebox::converter
