// SPDX-License-Identifier: Apache-2.0
// The separate sources that say which checkpoint key belongs to which variable;
// variables.h puts them together.
#pragma once

#include <string>
#include <unordered_map>

#include "converter/import/saved_model/bundle.h"
#include "converter/import/saved_model/reader.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

// What a restore op assigns: a tensor of the checkpoint, or a part of one ("5 3 2,2:-", see slice_spec.h).
struct RestoredTensor {
  std::string key, slice;
  bool operator==(const RestoredTensor&) const = default;
};

// What the restore function (or, in TensorFlow 1, the restore nodes of the main graph) assigns to each handle
// node of the main graph. Empty when the model cannot be restored.
Result<std::unordered_map<std::string, RestoredTensor>> RestoredHandles(const SavedModel& model);

struct CheckpointKeys {
  std::unordered_map<int, std::string> of_object;  // object of the SavedModel -> key
  std::unordered_map<std::string, std::string>
      of_name;  // full name in the checkpoint -> key; "" where it is ambiguous
};

// Walks the SavedModel's objects and the checkpoint's own side by side,
// matching children by name. Node numbers of the two need not agree.
Result<CheckpointKeys> KeysOfObjects(const SavedModel& model, const Bundle& bundle);

// Object -> handle node of the main graph, from the calls of functions whose
// captures are known.
Result<std::unordered_map<int, std::string>> HandlesOfObjects(const SavedModel& model);

}  // namespace fusebox::saved_model
