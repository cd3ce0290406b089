// SPDX-License-Identifier: Apache-2.0
// Dead branches of TensorFlow 1 conditionals. A Switch has one dead output, a Merge forwards its live input,
// and every reader of a dead value is dead. If the condition is constant (usually the training flag), the
// dead side is known.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {

bool IsSwitch(const tf::NodeDef&);
bool IsMerge(const tf::NodeDef&);
// The constant condition of a Switch, followed through identities, negations and defaults that no signature
// feeds; nullopt: not constant.
std::optional<bool> ConstantCondition(const Function&, ValueId);

class DeadBranches {
 public:
  explicit DeadBranches(bool in_function) : in_function_(in_function) {}

  // Marks output `output` of a Switch as dead.
  void Cut(const tf::NodeDef& of_switch, int output) { cut_[of_switch.name()] = output; }
  bool IsDead(const std::string& input) const;
  // Returns whether the node is dead. Call it for producers before their readers. A Merge is dead if all its
  // inputs are.
  bool Reach(const tf::NodeDef&);

 private:
  bool in_function_;
  std::map<std::string, int> cut_;
  std::set<std::string> dead_;
};

}  // namespace fusebox::saved_model
