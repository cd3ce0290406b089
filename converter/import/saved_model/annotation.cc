// SPDX-License-Identifier: Apache-2.0
// Reads the composite annotation in a function's attributes.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <optional>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {
namespace {

// Without one, the parser prints to stderr what is no text form.
struct NoErrors : google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

// TensorFlow parses the text form of a NameAttrList (`name: "my_op" attr { ... }`) when it traces a function.
// Other exporters store the text as a string. A plain name is not in that form.
std::optional<tf::NameAttrList> ParseNameAttrList(const std::string& text) {
  NoErrors errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  tf::NameAttrList parsed;
  if (!parser.ParseFromString(text, &parsed) || parsed.name().empty()) return std::nullopt;
  return parsed;
}

Status SetAttr(Attrs& attrs, const std::string& place, const std::string& name, const tf::AttrValue& value) {
  FUSEBOX_ASSIGN(AttrValue converted, ToAttr(value).At(place + " " + name));
  if (!std::holds_alternative<std::monostate>(converted)) attrs.Set(name, std::move(converted));
  return {};
}

}  // namespace

bool IsNoise(const std::string& name) {
  return name.starts_with('_') || name == "Tin" || name == "Tout" || name == "config" ||
         name == "config_proto" || name == "executor_type" || name == "parallel_iterations" ||
         name == "output_shapes";
}

Shape ArgShape(const tf::FunctionDef& function, int arg) {
  const auto it = function.arg_attr().find(static_cast<uint32_t>(arg));
  if (it == function.arg_attr().end()) return Shape();
  const auto shapes = it->second.attr().find("_output_shapes");
  if (shapes == it->second.attr().end() || shapes->second.list().shape_size() != 1) return Shape();
  return ToShape(shapes->second.list().shape(0));
}

Result<Annotation> AnnotationOf(const tf::FunctionDef& function) {
  Annotation out;
  const auto& attrs = function.attr();
  for (const char* key : {"_implements", "api_implements", "experimental_api_implements"}) {
    const auto it = attrs.find(key);
    if (it == attrs.end()) continue;
    std::optional<tf::NameAttrList> list;
    if (it->second.has_func()) list = it->second.func();
    else list = ParseNameAttrList(it->second.s());
    if (list) {
      out.name = list->name();
      for (const auto& [name, value] : list->attr())
        FUSEBOX_TRY(SetAttr(out.attrs, std::string(key) + " attribute", name, value));
    } else {
      out.name = it->second.s();
      for (const auto& [name, value] : attrs)
        if (!IsNoise(name) && name.find("api_") == std::string::npos)
          FUSEBOX_TRY(SetAttr(out.attrs, "attribute", name, value));
    }
    return out;
  }
  return out;
}

}  // namespace fusebox::saved_model
