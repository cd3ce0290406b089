// SPDX-License-Identifier: Apache-2.0
// ModelBuilder: writes test models, as SavedModels or as .tflite files. C++20 over libfusebox-models'
// <fusebox/c_models.h>, which has the rules in full.
//
//   fusebox::ModelBuilder model(fusebox::ModelFormat::kSavedModel);
//   auto body = model.Function("leaky").Implements("acme.leaky", R"({"alpha": 0.1})");
//   const auto x = body.Input("x", "f32[2,3]");
//   const auto alpha = body.Constant<float>("f32[]", {0.1f});
//   body.Return({body.Op("Maximum", {x, body.Op("Mul", {x, alpha})})});
//   auto call = model.Function("call");
//   call.Return(call.Call(body, {call.Input("x", "f32[2,3]")}));
//   model.Signature("serving_default", call, {"x"}, {"y"});
//   if (auto written = model.Write("leaky"); !written) return fail(written.error().message);
//
// After the first error, nothing more is added: Write returns it, and error() has it before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusebox/c_models.h"
#include "fusebox/result.hpp"

namespace fusebox {
inline namespace v1 {

enum class ModelFormat : int32_t {
  kSavedModel = FUSEBOX_MODELS_SAVED_MODEL,  // ops are TensorFlow's: "AddV2"
  kTflite = FUSEBOX_MODELS_TFLITE,           // ops are builtin ops, "ADD", or custom ops
};

// A value of one function, and a variable of the model.
struct ModelValue {
  int32_t id = -1;
};
struct ModelVariable {
  int32_t id = -1;
};

namespace detail {

// The C builder, and the first error.
struct ModelState {
  fusebox_models_builder* builder = nullptr;
  std::optional<Error> error;
  ~ModelState() { fusebox_models_destroy(builder); }

  // Calls `function(char** error)`, unless there is an error already.
  template <class F>
  void Do(F&& function) {
    if (error) return;
    char* text = nullptr;
    const fusebox_status status = function(&text);
    if (status != FUSEBOX_OK)
      error = Error{static_cast<Code>(status), text != nullptr ? text : "no memory for the error text"};
    fusebox_models_free(text);
  }
};

}  // namespace detail

// A function under construction. A copy stands for the same function; the ModelBuilder must exist.
class ModelFunction {
 public:
  // Calls of this function are the composite `name`. `attributes`: a JSON object, or empty.
  ModelFunction& Implements(const std::string& name, const std::string& attributes = {}) {
    model_->Do([&](char** error) {
      return fusebox_models_implements(model_->builder, id_, name.c_str(), OrNull(attributes), error);
    });
    return *this;
  }

  ModelValue Input(const std::string& name, const std::string& type) {
    ModelValue value;
    model_->Do([&](char** error) {
      return fusebox_models_add_input(model_->builder, id_, name.c_str(), type.c_str(), &value.id, error);
    });
    return value;
  }

  template <class T>
  ModelValue Constant(const std::string& type, std::span<const T> values) {
    ModelValue value;
    model_->Do([&](char** error) {
      return fusebox_models_add_constant(model_->builder, id_, type.c_str(), values.data(),
                                         values.size_bytes(), &value.id, error);
    });
    return value;
  }
  template <class T>
  ModelValue Constant(const std::string& type, std::initializer_list<T> values) {
    return Constant(type, std::span<const T>(values.begin(), values.size()));
  }

  ModelValue Read(ModelVariable variable) {
    ModelValue value;
    model_->Do([&](char** error) {
      return fusebox_models_read_variable(model_->builder, id_, variable.id, &value.id, error);
    });
    return value;
  }

  // A node with one result. `type`: of the result; empty: inferred.
  ModelValue Op(const std::string& op, const std::vector<ModelValue>& inputs,
                const std::string& attributes = {}, const std::string& type = {}) {
    const std::vector<std::string> types = type.empty() ? std::vector<std::string>() : std::vector{type};
    return Ops(op, inputs, 1, attributes, types)[0];
  }
  // A node with several results. `types`: one per result, or none: inferred.
  std::vector<ModelValue> Ops(const std::string& op, const std::vector<ModelValue>& inputs,
                              size_t result_count, const std::string& attributes = {},
                              const std::vector<std::string>& types = {}) {
    std::vector<ModelValue> results(result_count);
    if (!types.empty() && types.size() != result_count) {
      Fail(op + ": one type per result, or none");
      return results;
    }
    std::vector<const char*> texts;
    for (const std::string& type : types) texts.push_back(type.c_str());
    const std::vector<int32_t> ids = Ids(inputs);
    std::vector<int32_t> added(result_count, -1);
    model_->Do([&](char** error) {
      return fusebox_models_add_op(model_->builder, id_, op.c_str(), OrNull(attributes), ids.data(),
                                   ids.size(), texts.empty() ? nullptr : texts.data(), added.data(),
                                   result_count, error);
    });
    for (size_t i = 0; i < result_count; ++i) results[i].id = added[i];
    return results;
  }

  // Calls a function that has returned. In a .tflite, it must implement a composite.
  std::vector<ModelValue> Call(const ModelFunction& callee, const std::vector<ModelValue>& inputs) {
    const std::vector<int32_t> ids = Ids(inputs);
    std::vector<int32_t> added(callee.result_count_, -1);
    model_->Do([&](char** error) {
      return fusebox_models_call(model_->builder, id_, callee.id_, ids.data(), ids.size(), added.data(),
                                 added.size(), error);
    });
    std::vector<ModelValue> results(added.size());
    for (size_t i = 0; i < added.size(); ++i) results[i].id = added[i];
    return results;
  }

  // Completes the function: its results.
  void Return(const std::vector<ModelValue>& values) {
    const std::vector<int32_t> ids = Ids(values);
    model_->Do([&](char** error) {
      return fusebox_models_return(model_->builder, id_, ids.data(), ids.size(), error);
    });
    result_count_ = values.size();
  }

 private:
  friend class ModelBuilder;
  explicit ModelFunction(detail::ModelState* model) : model_(model) {}

  static const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  static std::vector<int32_t> Ids(const std::vector<ModelValue>& values) {
    std::vector<int32_t> ids;
    for (const ModelValue value : values) ids.push_back(value.id);
    return ids;
  }
  void Fail(std::string message) {
    if (!model_->error) model_->error = Error{Code::kInvalid, std::move(message)};
  }

  detail::ModelState* model_;
  int32_t id_ = -1;
  size_t result_count_ = 1;
};

class ModelBuilder {
 public:
  explicit ModelBuilder(ModelFormat format) : state_(std::make_unique<detail::ModelState>()) {
    state_->Do([&](char** error) {
      return fusebox_models_create(static_cast<int32_t>(format), &state_->builder, error);
    });
  }

  ModelFunction Function(const std::string& name) {
    ModelFunction function(state_.get());
    state_->Do([&](char** error) {
      return fusebox_models_add_function(state_->builder, name.c_str(), &function.id_, error);
    });
    return function;
  }

  // A variable with its initial value, for ModelFunction::Read. SavedModels only.
  template <class T>
  ModelVariable Variable(const std::string& name, const std::string& type, std::span<const T> values) {
    ModelVariable variable;
    state_->Do([&](char** error) {
      return fusebox_models_add_variable(state_->builder, name.c_str(), type.c_str(), values.data(),
                                         values.size_bytes(), &variable.id, error);
    });
    return variable;
  }
  template <class T>
  ModelVariable Variable(const std::string& name, const std::string& type, std::initializer_list<T> values) {
    return Variable(name, type, std::span<const T>(values.begin(), values.size()));
  }

  // Names for the inputs and results of a function that has returned, in their order.
  void Signature(const std::string& key, const ModelFunction& function,
                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    std::vector<const char*> in;
    std::vector<const char*> out;
    for (const std::string& name : inputs) in.push_back(name.c_str());
    for (const std::string& name : outputs) out.push_back(name.c_str());
    state_->Do([&](char** error) {
      return fusebox_models_add_signature(state_->builder, key.c_str(), function.id_, in.data(), in.size(),
                                          out.data(), out.size(), error);
    });
  }

  // Writes the folder of the SavedModel, or the .tflite file. Nothing can be added afterwards.
  Status Write(const std::string& path) {
    state_->Do([&](char** error) { return fusebox_models_write(state_->builder, path.c_str(), error); });
    return state_->error ? Status(*state_->error) : Status();
  }

  // The first error; nothing if there is none.
  const std::optional<Error>& error() const { return state_->error; }

 private:
  std::unique_ptr<detail::ModelState> state_;
};

}  // namespace v1
}  // namespace fusebox
