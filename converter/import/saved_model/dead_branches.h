// SPDX-License-Identifier: Apache-2.0
// A conditional of TensorFlow 1 is made of Switch nodes, of whose two outputs one is dead, and of Merge
// nodes, which hand on what is alive; whatever reads a dead value is dead itself. Where the condition is
// constant, as that of training mostly is when a model is saved, it is known which side that is.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {

bool IsSwitch(const tf::NodeDef&);
bool IsMerge(const tf::NodeDef&);
// What the condition of a Switch is, where it is constant: past identities, negations and defaults that no
// signature feeds.
std::optional<bool> ConstantCondition(const Function&, ValueId);

class DeadBranches {
 public:
  explicit DeadBranches(bool in_function) : in_function_(in_function) {}

  // Output `output` of a Switch is dead.
  void Cut(const tf::NodeDef& of_switch, int output) { cut_[of_switch.name()] = output; }
  bool IsDead(const std::string& input) const;
  // Whether the node is dead; its readers are asked after it. A Merge is when all of its inputs are.
  bool Reach(const tf::NodeDef&);

 private:
  bool in_function_;
  std::map<std::string, int> cut_;
  std::set<std::string> dead_;
};

}  // namespace fusebox::saved_model
