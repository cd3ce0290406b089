// SPDX-License-Identifier: Apache-2.0
// Element types of tensor lists.
#pragma once

#include "host/eval/open_sizes.h"

namespace fusebox::converter {

// The type of one element; or, with `dims` (the shape of the whole list as a value), the type of the list.
struct Elements {
  Type type;
  ValueId dims = kNoValue;
};

class ListElements {
 public:
  ListElements(Registry& registry, Module& module, Function& f)
      : registry_(registry), module_(module), f_(f) {}
  // Elements of the list created by a TENSOR_LIST_RESERVE of `f`; unranked if unknown. May insert nodes that
  // compute the shape, and may move the RESERVE after their inputs.
  Elements Of(const Node& reserve);

 private:
  // By loop and final dimensions: the list as a result of the loop.
  using Checks = std::map<std::pair<const Node*, Sizes>, ValueId>;
  const Node* FirstReader(ValueId list, const Sizes& dims) const;
  Elements Make(const Node& reserve, const Node& first, DType, const Sizes& start, const Checks&);
  void CheckBehind(const Node& loop, ValueId given_back, const Sizes&, ValueId length, Type list);

  Registry& registry_;
  Module& module_;
  Function& f_;
  std::optional<OpenSizes> open_;  // of `f`, created on demand
};

}  // namespace fusebox::converter
