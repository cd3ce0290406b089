// SPDX-License-Identifier: Apache-2.0
// Variables: maps each variable to the checkpoint tensor that is its value.
//
// Two sources are combined: the restore function (main graph handle -> key) and the two object graphs (object
// -> key, and through a function's captures object -> main graph handle). If they name different keys, the
// restore function takes precedence, with a warning unless both keys hold the same tensor. The variable's
// name is used only if neither source has a key. Values are read on demand, so a model with a missing
// optimizer slot still converts.
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
  std::string name;               // the author's name: "dense/kernel"
  std::string key;                // in the checkpoint; empty: unknown
  std::optional<SliceSpec> part;  // slice of that tensor, if the variable is only a part of it
  std::string bound_by;           // how the key was found: "restore function, object graph"
  tf::DataType dtype = tf::DT_INVALID;
  std::vector<int64_t> shape;  // declared; -1: unknown dimension
  bool unknown_rank = false;
  bool trainable = false;
  int object = -1;  // in SavedModel::objects(), or -1
};

// A capture of a concrete function, one per trailing argument. Exactly one field is set.
struct Capture {
  int variable = -1;     // index for Variables
  std::string constant;  // a Const node of the main graph
  int object = -1;       // anything else: a table, an asset
};

class Variables {
 public:
  // Errors: one source contradicts itself, or the index is malformed. A model without variables/ is accepted;
  // its variables have no key.
  static Result<Variables> Bind(const SavedModel& model);

  const std::vector<Variable>& all() const { return variables_; }
  const Variable& operator[](int variable) const { return variables_[variable]; }
  // Returns the variable index by handle node of the main graph, or by object, or nullopt if it is no
  // variable.
  std::optional<int> OfNode(std::string_view node) const;
  std::optional<int> OfObject(int object) const;
  // Captures of a function (a key of objects().concrete_functions), in the order of its trailing arguments.
  Result<std::vector<Capture>> CapturesOf(std::string_view function) const;

  // The value: bytes as returned by Bundle::Read, of Shape() and the variable's dtype. Errors name the
  // variable, the key and the file: missing, damaged, or another dtype or shape than declared.
  Result<Buffer> Read(int variable) const;
  // The shape of the stored value, without unknown dimensions.
  Result<std::vector<int64_t>> Shape(int variable) const;
  // Variables whose sources name different keys with different tensors.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Returns null if the model has no variables/ folder.
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
