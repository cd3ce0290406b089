// SPDX-License-Identifier: Apache-2.0
// Builds a SavedModel or a .tflite file from functions, ops and composites. Wrong arguments are errors.
//
// Functions, values and variables are numbers, counted from 0; values count within their function. One
// thread.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::models {

enum class Format { kSavedModel, kTflite };

class Builder {
 public:
  using Ids = std::vector<int>;
  using Names = std::vector<std::string>;

  static std::unique_ptr<Builder> Create(Format);
  virtual ~Builder() = default;

  Result<int> AddFunction(const std::string& name);
  // The function is the body of a composite: calls of it are composites. Before Return.
  Status Implements(int function, const std::string& composite, const Attrs&);
  Result<int> AddInput(int function, const std::string& name, const Type&);
  Result<int> AddConstant(int function, const Tensor&);
  // A variable of the model, with its initial value. SavedModel only.
  Result<int> AddVariable(const std::string& name, const Tensor&);
  Result<int> ReadVariable(int function, int variable);
  // A node of an op: TensorFlow's, or in a .tflite a builtin op or, under any other name, a custom op.
  // `types`: of the results; empty: inferred, which a .tflite's custom ops do not support. Returns
  // `result_count` values.
  Result<Ids> AddOp(int function, const std::string& op, const Attrs&, const Ids& inputs, size_t result_count,
                    std::span<const Type> types);
  // A call of a function that is complete. In a .tflite, the callee implements a composite.
  Result<Ids> Call(int function, int callee, const Ids& inputs, size_t result_count);
  // Completes the function: its results.
  Status Return(int function, const Ids& values);
  // Names for the inputs and the results of a complete function, in their order.
  Status AddSignature(const std::string& key, int function, const Names& inputs, const Names& outputs);
  // To a folder, or to a file. Afterwards, nothing can be added.
  Status Write(const std::string& path);

 protected:
  struct Function {
    Names inputs;
    std::set<std::string> names;
    int values = 0;
    int results = 0;
    bool implements = false;
    bool complete = false;
  };
  const Function& function(int id) const { return functions_[static_cast<size_t>(id)]; }

 private:
  virtual void DoAddFunction(const std::string& name) = 0;
  virtual Status DoImplements(int function, const std::string& composite, const Attrs&) = 0;
  virtual Status DoAddInput(int function, const std::string& name, const Type&) = 0;
  virtual Status DoAddConstant(int function, const Tensor&) = 0;
  virtual Status DoAddVariable(const std::string& name, const Tensor&) = 0;
  virtual Status DoReadVariable(int function, int variable) = 0;
  virtual Status DoAddOp(int function, const std::string& op, const Attrs&, const Ids& inputs,
                         size_t result_count, std::span<const Type> types) = 0;
  virtual Status DoCall(int function, int callee, const Ids& inputs) = 0;
  virtual void DoReturn(int function, const Ids& values) = 0;
  virtual void DoAddSignature(const std::string& key, int function, const Names& inputs,
                              const Names& outputs) = 0;
  virtual Status DoWrite(const std::string& path) = 0;

  Result<Function*> Open(int id);
  Status CheckValues(const Function&, const Ids& values) const;
  // The next value, after `added` has succeeded.
  Result<int> Counted(int function, Status added);

  std::vector<Function> functions_;
  std::set<std::string> variable_names_, signatures_;
  bool written_ = false;
};

}  // namespace fusebox::models
