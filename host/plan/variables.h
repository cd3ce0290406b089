// SPDX-License-Identifier: Apache-2.0
// Which reads of resource variables need no copy: results that are the memory of the variable, or that are
// computed in place there. So a KV cache is read, updated with DYNAMIC_UPDATE_SLICE and assigned in place.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/plan/plan.h"

namespace fusebox::plan {

// Returns whether the node's first result may share memory with an operand.
bool IsInPlace(const Code&, size_t node);

// Returns whether nothing reads behind the memory of an input or output: kernels of the plugin cpu do not,
// other plugins and delegates may (kOverread).
bool IsReadExactly(const Code&, ValueId);

class VariableUses {
 public:
  explicit VariableUses(const Code&);

  // Returns whether the result of a READ_VARIABLE may be the variable's memory: nothing else reads or assigns
  // the variable until the last use of the result, and of values computed in place from it.
  bool MayShow(size_t read) const { return shown_.contains(read); }
  // Returns the READ_VARIABLE and the operand that this node may overwrite, because its result, or a value
  // computed in place from it, is assigned to the same variable. The operand is kNoValue if there is none.
  std::pair<size_t, ValueId> UpdatedBy(size_t node) const;

 private:
  using Name = std::pair<std::string, std::string>;  // container, name

  void Follow(size_t read);
  std::vector<ValueId> ValuesInPlace(ValueId from, const Name& variable) const;
  ValueId NextInPlace(ValueId) const;
  bool IsAssigned(ValueId, const Name& variable) const;
  bool IsTouched(size_t node, const Name& variable, const std::vector<ValueId>& values);
  bool HasVariables(const Code&);
  const Name* NameOf(const Node&) const;  // of the operand 0; null: unknown

  const Code& code_;
  std::map<ValueId, Name> handles_;
  std::multimap<ValueId, size_t> assigns_;  // nodes, by assigned value
  std::set<size_t> shown_;
  std::map<size_t, std::pair<size_t, ValueId>> updates_;
  std::set<const Code*> without_;  // functions that use no variables
};

}  // namespace fusebox::plan
