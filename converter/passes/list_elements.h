// SPDX-License-Identifier: Apache-2.0
// What the elements of a tensor list are like.
#pragma once

#include "host/eval/open_sizes.h"

namespace fusebox::converter {

// The type of one element or, with the shape of the whole list as a value (`dims`), the type of the list.
struct Elements {
  Type type;
  ValueId dims = kNoValue;
};

class ListElements {
 public:
  ListElements(Registry& registry, Module& module, Function& f)
      : registry_(registry), module_(module), f_(f) {}
  // Of the list that a TENSOR_LIST_RESERVE of `f` makes; unranked if unknown. May insert nodes that compute
  // the shape, and may move the RESERVE behind what they read.
  Elements Of(const Node& reserve);

 private:
  // By a loop and the dimensions that it ends with: the list as it comes out.
  using Checks = std::map<std::pair<const Node*, Sizes>, ValueId>;
  const Node* FirstReader(ValueId list, const Sizes& dims) const;
  Elements Make(const Node& reserve, const Node& first, DType, const Sizes& start, const Checks&);
  void CheckBehind(const Node& loop, ValueId given_back, const Sizes&, ValueId length, Type list);

  Registry& registry_;
  Module& module_;
  Function& f_;
  std::optional<OpenSizes> open_;  // of `f`, once one asks
};

}  // namespace fusebox::converter
