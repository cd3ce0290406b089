// SPDX-License-Identifier: Apache-2.0
// A SavedModel: ops of TensorFlow; a composite is a function with "_implements".
#include "models/saved_model/saved_model_builder.h"

#include "converter/import/saved_model/tensor_data.h"
#include "models/build/formats.h"
#include "models/build/tensorflow_ops.h"

namespace fusebox::models {
namespace {

using models::FunctionBuilder, models::Ref;

class SavedModel : public Builder {
  void DoAddFunction(const std::string& name) override {
    functions_.push_back({&model_.AddFunction("__inference_" + name), {}});
  }

  Status DoImplements(int function, const std::string& composite, const Attrs& attrs) override {
    FUSEBOX_ASSIGN(const std::vector<models::Attr> protos, ToTensorFlow(attrs));
    at(function).builder->SetAttr(models::Attr("_implements", composite, protos));
    return {};
  }

  Status DoAddInput(int function, const std::string& name, const Type& type) override {
    const tf::DataType dtype = ToTensorFlow(type.dtype);
    if (dtype == tf::DT_INVALID)
      return Unsupported("input " + name + ": a SavedModel has no " + ToString(type));
    if (at(function).builder->HasName(name))
      return Invalid("input " + name + ": a node has this name; add inputs before ops, or use another name");
    return Add(function, at(function).builder->Arg(name, dtype, type.shape));
  }

  Status DoAddConstant(int function, const Tensor& tensor) override {
    FUSEBOX_ASSIGN(const models::TensorValue value, ToTensorFlow(tensor));
    return Add(function, at(function).builder->Const(value));
  }

  Status DoAddVariable(const std::string& name, const Tensor& tensor) override {
    FUSEBOX_ASSIGN(models::TensorValue value, ToTensorFlow(tensor));
    variables_.push_back(model_.AddVariable(name, std::move(value), "weights/" + name));
    return {};
  }

  Status DoReadVariable(int function, int variable) override {
    return Add(function, at(function).builder->Read(variables_[static_cast<size_t>(variable)]));
  }

  Status DoAddOp(int function, const std::string& op, const Attrs& attrs, const Ids& inputs,
                 size_t result_count, std::span<const Type> types) override {
    FUSEBOX_ASSIGN(std::vector<Ref> results,
                   models::AddOp(*at(function).builder, op, Values(function, inputs), attrs));
    if (results.size() < result_count)
      return Invalid("has " + std::to_string(results.size()) + " results, not " +
                     std::to_string(result_count));
    for (size_t i = 0; i < result_count; ++i) {
      if (!types.empty()) results[i].shape = types[i].shape;
      at(function).values.push_back(results[i]);
    }
    return {};
  }

  Status DoCall(int function, int callee, const Ids& inputs) override {
    const std::vector<Ref> values = Values(function, inputs);
    const std::vector<Ref>& args = at(callee).builder->args();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].dtype != args[i].dtype)
        return Invalid("value " + std::to_string(i) + " is " + saved_model::DataTypeName(values[i].dtype) +
                       ", expected " + saved_model::DataTypeName(args[i].dtype));
    }
    for (const Ref& result : at(function).builder->Call(*at(callee).builder, values))
      at(function).values.push_back(result);
    return {};
  }

  void DoReturn(int function, const Ids& values) override {
    at(function).builder->Return(Values(function, values));
  }

  void DoAddSignature(const std::string& key, int function, const Names& inputs,
                      const Names& outputs) override {
    model_.AddSignature(key, *at(function).builder, inputs, outputs);
  }

  Status DoWrite(const std::string& path) override { return model_.Write(path); }

  struct Content {
    FunctionBuilder* builder;
    std::vector<Ref> values;
  };
  Content& at(int function) { return functions_[static_cast<size_t>(function)]; }

  Status Add(int function, const Ref& value) {
    at(function).values.push_back(value);
    return {};
  }

  std::vector<Ref> Values(int function, const Ids& ids) {
    std::vector<Ref> out;
    for (const int id : ids) out.push_back(at(function).values[static_cast<size_t>(id)]);
    return out;
  }

  models::SavedModelBuilder model_;
  std::vector<Content> functions_;
  std::vector<models::VariableRef> variables_;
};

}  // namespace

std::unique_ptr<Builder> NewSavedModelBuilder() { return std::make_unique<SavedModel>(); }

}  // namespace fusebox::models
