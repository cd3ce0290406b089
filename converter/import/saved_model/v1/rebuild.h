// SPDX-License-Identifier: Apache-2.0
// Rebuilds control flow of TensorFlow 1 (Enter, Exit, NextIteration, LoopCond, Switch, Merge) and
// TensorArrays in the form of TensorFlow 2: While and If nodes with functions of the library, and tensor
// lists. It runs before a graph is imported; graphs without such nodes do not change.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model::v1 {

// An input of a signature: it takes the place of `edge`.
struct Feed {
  Edge edge;
  DType dtype;
};

struct Rebuilt {
  std::vector<const tf::NodeDef*> nodes;
  std::vector<std::string> results;  // what the wanted edges are now
  std::deque<tf::NodeDef> made;      // owns the nodes that are new
};
// The main graph between feeds and results. Functions that it adds to the model may have any name.
Result<Rebuilt> RebuildMain(SavedModel&, const std::vector<Feed>&, const std::vector<std::string>& results);
// A function of the library; the same one if it has no such nodes.
Result<const tf::FunctionDef*> RebuildFunction(SavedModel&, const tf::FunctionDef&);

}  // namespace fusebox::saved_model::v1
