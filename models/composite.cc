// SPDX-License-Identifier: Apache-2.0
#include "models/composite.h"

#include <unistd.h>

#include <filesystem>
#include <map>

#include "converter/convert.h"
#include "host/base/json.h"
#include "host/plugin/steps.h"
#include "models/build/tensor_text.h"
#include "models/build/tensorflow_ops.h"
#include "models/saved_model/saved_model_builder.h"

// sdk/schema/model-body-1.json, embedded by the build.
extern "C" const char fusebox_schema_model_body_1[];

namespace fusebox::models {
namespace {

namespace fs = std::filesystem;
using models::FunctionBuilder, models::Ref, models::SavedModelBuilder;
using nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kSignature = "serving_default";

Result<Document> ReadBody(const std::string& path) {
  static const JsonSchema schema = *JsonSchema::Parse(fusebox_schema_model_body_1);
  FUSEBOX_ASSIGN(std::string text, ReadTextFile(path));
  return ParseDocument(path, std::move(text), schema);
}

// Reads a body into a function of a SavedModel. The values of the function by name.
class BodyReader {
 public:
  BodyReader(const Document& document, const std::string& folder, FunctionBuilder& function)
      : document_(document), folder_(folder), function_(function) {}

  Status Read(const std::map<std::string, models::TensorValue>& weights, std::span<const Type> inputs) {
    FUSEBOX_TRY(ReadInputs(weights, inputs));
    const json constants = document_.value.value("constants", json::object());
    for (const auto& [name, constant] : constants.items()) FUSEBOX_TRY(ReadConstant(name, constant));
    const json& ops = document_.value["ops"];
    for (size_t i = 0; i < ops.size(); ++i) FUSEBOX_TRY(ReadOp(ops[i], "/ops/" + std::to_string(i)));
    FUSEBOX_ASSIGN(const std::vector<Ref> outputs, Find(document_.value["outputs"], "/outputs"));
    function_.Return(outputs);
    return {};
  }

 private:
  Status ReadInputs(const std::map<std::string, models::TensorValue>& weights, std::span<const Type> inputs) {
    size_t next = 0;
    const json& names = document_.value["inputs"];
    for (size_t i = 0; i < names.size(); ++i) {
      const auto name = names[i].get<std::string>();
      const auto at = "/inputs/" + std::to_string(i);
      if (values_.contains(name)) return document_.Complain(at, "two values have the name " + name);
      if (const auto weight = weights.find(name); weight != weights.end()) {
        values_[name] = function_.Arg(name, weight->second.dtype, weight->second.shape);
      } else if (next < inputs.size()) {
        values_[name] = function_.Arg(name, ToTensorFlow(inputs[next].dtype), inputs[next].shape);
        ++next;
      } else {
        return document_.Complain(at, name + " has no type; add --input, or weights of this name");
      }
    }
    if (next == inputs.size()) return {};
    return document_.Complain("/inputs", "lists " + std::to_string(next) + " inputs without weights, but " +
                                             std::to_string(inputs.size()) + " --input are given");
  }

  Status ReadConstant(const std::string& name, const json& constant) {
    const std::string at = "/constants/" + EscapePointer(name);
    FUSEBOX_ASSIGN(const Tensor tensor, ReadTensor(document_, constant, at, folder_));
    FUSEBOX_ASSIGN(const models::TensorValue value, ToTensorFlow(tensor));
    return Add(name, function_.Const(value, "Const"), at);
  }

  Status ReadOp(const json& op, const std::string& at) {
    FUSEBOX_ASSIGN(const std::vector<Ref> inputs, Find(op["inputs"], at + "/inputs"));
    const auto attrs = AttrsFromJson(op.value("attributes", json::object()));
    if (!attrs) return document_.Complain(at + "/attributes" + attrs.error().pointer, attrs.error().what);
    const auto results = AddOp(function_, op["op"].get<std::string>(), inputs, *attrs);
    if (!results) return document_.Complain(at + "/op", results.error().message);
    const json& names = op["results"];
    if (names.size() > results->size())
      return document_.Complain(at + "/results", "lists " + std::to_string(names.size()) +
                                                     " results, but the op has " +
                                                     std::to_string(results->size()));
    for (size_t i = 0; i < names.size(); ++i)
      FUSEBOX_TRY(Add(names[i].get<std::string>(), (*results)[i], at + "/results/" + std::to_string(i)));
    return {};
  }

  Status Add(const std::string& name, const Ref& value, const std::string& at) {
    if (values_.emplace(name, value).second) return {};
    return document_.Complain(at, "two values have the name " + name);
  }

  Result<std::vector<Ref>> Find(const json& names, const std::string& at) const {
    std::vector<Ref> found;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto value = values_.find(names[i].get<std::string>());
      if (value == values_.end())
        return NotFoundAt(names[i].get<std::string>(), at + "/" + std::to_string(i));
      found.push_back(value->second);
    }
    return found;
  }

  std::unexpected<Error> NotFoundAt(const std::string& name, const std::string& at) const {
    Names known;
    for (const auto& [other, value] : values_) known.push_back(other);
    return document_.Complain(at, "no value " + name + " before" + DidYouMean(name, known));
  }

  const Document& document_;
  const std::string& folder_;
  FunctionBuilder& function_;
  std::map<std::string, Ref> values_;
};

// The weights by name. Error: one that is no input.
Result<std::map<std::string, models::TensorValue>> ReadWeights(const Document& document,
                                                               const std::string& folder) {
  std::map<std::string, models::TensorValue> weights;
  const json listed = document.value.value("weights", json::object());
  const auto inputs = document.value["inputs"].get<Names>();
  for (const auto& [name, weight] : listed.items()) {
    const std::string at = "/weights/" + EscapePointer(name);
    if (std::ranges::find(inputs, name) == inputs.end())
      return document.Complain(at, "is not an input" + DidYouMean(name, inputs));
    FUSEBOX_ASSIGN(const Tensor tensor, ReadTensor(document, weight, at, folder));
    FUSEBOX_ASSIGN(weights[name], ToTensorFlow(tensor));
  }
  return weights;
}

// The function that the signature calls: reads the weights and calls the composite.
FunctionBuilder& AddCaller(SavedModelBuilder& model, const FunctionBuilder& composite, const Names& operands,
                           const std::map<std::string, models::TensorValue>& weights, Names& inputs) {
  FunctionBuilder& caller = model.AddFunction("__inference_call");
  std::vector<Ref> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = operands[i];
    if (const auto weight = weights.find(name); weight != weights.end()) {
      arguments.push_back(caller.Read(model.AddVariable(name, weight->second, "weights/" + name)));
    } else {
      arguments.push_back(caller.Arg(name, composite.args()[i].dtype, composite.args()[i].shape));
      inputs.push_back(name);
    }
  }
  caller.Return(caller.Call(composite, arguments));
  return caller;
}

Status WriteFolder(const CompositeModel& description, const std::string& path) {
  FUSEBOX_ASSIGN(const Document document, ReadBody(description.body));
  const std::string folder = fs::path(description.body).parent_path().string();
  FUSEBOX_ASSIGN(const auto weights, ReadWeights(document, folder));
  SavedModelBuilder model;
  FunctionBuilder& composite = model.AddFunction("__inference_composite");
  FUSEBOX_ASSIGN(const std::vector<models::Attr> attrs, ToTensorFlow(description.attrs));
  composite.SetAttr(models::Attr("_implements", description.name, attrs));
  FUSEBOX_TRY(BodyReader(document, folder, composite).Read(weights, description.inputs));
  Names inputs;
  const auto operands = document.value["inputs"].get<Names>();
  const FunctionBuilder& caller = AddCaller(model, composite, operands, weights, inputs);
  model.AddSignature(kSignature, caller, inputs, document.value["outputs"].get<Names>());
  return model.Write(path);
}

// A folder that is removed at the end.
struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "fusebox-model-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// Through a SavedModel: the converter keeps the composite and translates its body.
Status WriteTflite(const CompositeModel& description, const std::string& path) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return IoError("no temporary folder can be created; set TMPDIR");
  FUSEBOX_TRY(WriteFolder(description, folder.path));
  converter::Conversion conversion = converter::FromSavedModel(folder.path);
  conversion.options.composites = converter::Composites::kKeep;
  FUSEBOX_ASSIGN(const converter::Converted converted, conversion.Convert().At(description.body));
  return converted.Write(path);
}

}  // namespace

Status Write(const CompositeModel& description, const std::string& path) {
  if (fs::path(path).extension() == ".tflite") return WriteTflite(description, path);
  std::error_code error;
  if (fs::exists(path, error) && !fs::exists(fs::path(path) / "saved_model.pb", error) &&
      !fs::is_empty(path, error))
    return Invalid(path + ": is there and is no SavedModel; write elsewhere");
  return WriteFolder(description, path);
}

}  // namespace fusebox::models
