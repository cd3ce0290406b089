// SPDX-License-Identifier: Apache-2.0
// Variables: which tensor of the checkpoint is the value of which variable.
//
// Two sources say so: the restore function (main graph handle -> key) and the
// two object graphs (object -> key, and through a function's captures object ->
// main graph handle). Both are used. Where they name different keys, the restore function
// decides; a warning says so unless both keys hold the same tensor. The variable's name
// decides only where neither has a key. Values are read on demand, so that a model with a
// missing optimizer slot still converts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "converter/import/saved_model/bundle.h"
#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/slice_spec.h"
#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

struct Variable {
  std::string node;               // its handle in the main graph (VarHandleOp, or VariableV2
                                  // in TensorFlow 1); may be empty
  std::string name;               // what its author calls it: "dense/kernel"
  std::string key;                // in the checkpoint; empty when nothing says where its value is
  std::optional<SliceSpec> part;  // of the tensor of that key, where the variable is no more than that
  std::string bound_by;           // how the key was found: "restore function, object graph"
  tf::DataType dtype = tf::DT_INVALID;
  std::vector<int64_t> shape;  // as declared: -1 for an unknown dimension
  bool unknown_rank = false;
  bool trainable = false;
  int object = -1;  // in SavedModel::objects(), or -1
};

// What a concrete function captured, one per trailing argument: exactly one of
// the three is set.
struct Capture {
  int variable = -1;     // index for Variables
  std::string constant;  // a Const node of the main graph
  int object = -1;       // anything else: a table, an asset
};

class Variables {
 public:
  // Fails when one source contradicts itself or the index is malformed. A
  // model without variables/ binds: its variables, if it has any, have no key.
  static Result<Variables> Bind(const SavedModel& model);

  const std::vector<Variable>& all() const { return variables_; }
  const Variable& operator[](int variable) const { return variables_[variable]; }
  // Index by name of the main graph's handle node, or by object; nothing if
  // that is no variable.
  std::optional<int> OfNode(std::string_view node) const;
  std::optional<int> OfObject(int object) const;
  // What the function (a key of objects().concrete_functions) captured, in the
  // order of its trailing arguments.
  Result<std::vector<Capture>> CapturesOf(std::string_view function) const;

  // The value: bytes as Bundle::Read gives them, of Shape() and the variable's
  // dtype. Fails, naming the variable, the key and the file, when it is
  // missing, damaged, or not of the declared dtype and shape.
  Result<Buffer> Read(int variable) const;
  // The shape of the stored value: no unknown dimension.
  Result<std::vector<int64_t>> Shape(int variable) const;
  // Variables whose two sources name different keys that hold different tensors.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Null when the model has no variables/ folder.
  const Bundle* bundle() const { return bundle_.get(); }

 private:
  Result<const BundleTensor*> Stored(const Variable& variable) const;

  std::vector<Variable> variables_;
  std::vector<std::string> warnings_;
  std::unordered_map<std::string, int> by_node_;
  std::unordered_map<int, int> by_object_;
  SavedModel model_;
  std::shared_ptr<Bundle> bundle_;
  friend class VariableBinder;
};

}  // namespace fusebox::saved_model
