// SPDX-License-Identifier: Apache-2.0
// The sources that map variables to checkpoint keys; variables.h combines them.
#pragma once

#include <string>
#include <unordered_map>

#include "converter/import/saved_model/bundle.h"
#include "converter/import/saved_model/reader.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

// The value that a restore op assigns: a checkpoint tensor, or a slice of one ("5 3 2,2:-", see
// slice_spec.h).
struct RestoredTensor {
  std::string key, slice;
  bool operator==(const RestoredTensor&) const = default;
};

// Restored value of each handle node of the main graph, from the restore function (TensorFlow 1: the restore
// nodes of the main graph). Empty if the model has no restore function.
Result<std::unordered_map<std::string, RestoredTensor>> RestoredHandles(const SavedModel& model);

struct CheckpointKeys {
  std::unordered_map<int, std::string> of_object;        // object of the SavedModel -> key
  std::unordered_map<std::string, std::string> of_name;  // full name in the checkpoint -> key; "": ambiguous
};

// Walks the object graphs of the SavedModel and the checkpoint in parallel and matches children by name. Node
// numbers of the two may differ.
Result<CheckpointKeys> KeysOfObjects(const SavedModel& model, const Bundle& bundle);

// Object -> handle node of the main graph, from calls of functions with known captures.
Result<std::unordered_map<int, std::string>> HandlesOfObjects(const SavedModel& model);

}  // namespace fusebox::saved_model
