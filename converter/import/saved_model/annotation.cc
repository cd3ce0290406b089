// SPDX-License-Identifier: Apache-2.0
// What the attributes of a function say of it.
#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {

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
    if (it->second.has_func()) {
      out.name = it->second.func().name();
      for (const auto& [name, value] : it->second.func().attr()) {
        FUSEBOX_ASSIGN(AttrValue converted, ToAttr(value).At(std::string(key) + " attribute " + name));
        if (!std::holds_alternative<std::monostate>(converted)) out.attrs.Set(name, std::move(converted));
      }
    } else {
      out.name = it->second.s();
      for (const auto& [name, value] : attrs) {
        if (IsNoise(name) || name.find("api_") != std::string::npos) continue;
        FUSEBOX_ASSIGN(AttrValue converted, ToAttr(value).At("attribute " + name));
        if (!std::holds_alternative<std::monostate>(converted)) out.attrs.Set(name, std::move(converted));
      }
    }
    return out;
  }
  return out;
}

}  // namespace fusebox::saved_model
