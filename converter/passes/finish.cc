// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "converter/passes/pass.h"
#include "host/eval/eval.h"
#include "host/tflite/tflite.h"

namespace fusebox::converter {
namespace {

template <class From, class To>
std::vector<To> Listed(const Buffer& data) {
  const auto values = data.As<From>();
  return {values.begin(), values.end()};
}

// The elements as a list; monostate for types without lists.
AttrValue ElementsAttr(const Tensor& tensor) {
  const Buffer& data = tensor.data;
  switch (tensor.type.dtype) {
    case DType::kF32: return Listed<float, double>(data);
    case DType::kF64: return Listed<double, double>(data);
    case DType::kI8: return Listed<int8_t, int64_t>(data);
    case DType::kU8:
    case DType::kBool: return Listed<uint8_t, int64_t>(data);
    case DType::kI16: return Listed<int16_t, int64_t>(data);
    case DType::kI32: return Listed<int32_t, int64_t>(data);
    case DType::kI64: return Listed<int64_t, int64_t>(data);
    default: return {};
  }
}

Attrs Plain(const Attrs& attrs);

// FlexBuffer maps hold numbers, strings, lists and maps: dtypes become names, shapes lists, tensors maps.
AttrValue Plain(const AttrValue& value) {
  if (const auto* type = std::get_if<DType>(&value)) return std::string(Name(*type));
  if (const auto* shape = std::get_if<Shape>(&value)) return shape->dims();
  if (const auto* function = std::get_if<FunctionRef>(&value)) return function->name;
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    Attrs map;
    map.Set("dtype", std::string(Name(tensor->type.dtype)));
    map.Set("shape", tensor->type.shape.dims());
    if (AttrValue elements = ElementsAttr(*tensor); !std::holds_alternative<std::monostate>(elements))
      map.Set("data", std::move(elements));
    return std::make_shared<const Attrs>(std::move(map));
  }
  if (const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&value); map && *map)
    return std::make_shared<const Attrs>(Plain(**map));
  return value;
}

Attrs Plain(const Attrs& attrs) {
  Attrs out;
  for (const auto& [name, value] : attrs) out.Set(name, Plain(value));
  return out;
}

// Applies the losses of the file format: options with default values are dropped, reals become f32.
// Afterwards, reading the file back yields an equal graph.
void SettleOptions(Node& node) {
  if (node.is(Op::kCustom) || node.is(Op::kStablehloComposite)) {
    node.attrs = Plain(node.attrs);
    return;
  }
  const std::string_view table = Info(node.op).options;
  if (table.empty()) return;
  std::vector<std::string> defaults;
  Attrs rounded;
  for (const auto& [name, value] : node.attrs) {
    const AttrValue usual = tflite::OptionDefault(table, name);
    if (value == usual) defaults.push_back(name);
    else if (const auto* real = std::get_if<double>(&value); real && std::holds_alternative<double>(usual))
      rounded.Set(name, static_cast<double>(static_cast<float>(*real)));
  }
  for (const auto& name : defaults) node.attrs.Erase(name);
  for (const auto& [name, value] : rounded) node.attrs.Set(name, value);
}

bool HasRanks(const Module& module) {
  for (const Signature& s : module.signatures) {
    const Function& f = *module.Find(s.function);
    for (ValueId v = 0; v < f.value_count(); ++v)
      if (f.value(v).type.shape.ranked()) return true;
  }
  return false;
}

// TFLite encodes a scalar and an unknown rank alike, so a model whose input has an unknown rank must run with
// a scalar.
Status RequireRanks(Context& context, const Signature& s) {
  const Function& f = *context.module.Find(s.function);
  const auto open =
      std::ranges::find_if(f.inputs, [&](ValueId input) { return !f.value(input).type.shape.ranked(); });
  if (open == f.inputs.end()) return {};
  const std::string name = s.input_names[static_cast<size_t>(open - f.inputs.begin())];
  const auto refuse = [&](const std::string& why) {
    return Unsupported("signature " + s.key + ": input " + name + " has an unknown rank, " + why +
                       "; set --shape " + name + "=...");
  };
  if (!HasRanks(context.module)) return refuse("like all tensors of the model");
  const auto copy = Clone(context.module);
  Function& scalars = *copy->Find(s.function);
  for (const ValueId input : scalars.inputs)
    if (Shape& shape = scalars.value(input).type.shape; !shape.ranked()) shape = Shape::Scalar();
  const Status runs = InferTypes(context.registry, *copy, scalars);
  return runs ? Status() : refuse("and a scalar does not fit: " + runs.error().message);
}

}  // namespace

// Sorts entries first, in signature order; removes unreachable functions; records fused ops for the host.
Status Finish(Context& context) {
  Module& module = context.module;
  for (const auto& f : module.functions) {
    RemoveDead(*f);
    for (auto& node : f->nodes) SettleOptions(*node);
    f->Compact();
  }
  auto order = [&](const std::unique_ptr<Function>& f) {
    const auto at = std::find_if(module.signatures.begin(), module.signatures.end(),
                                 [&](const Signature& s) { return s.function == f->name; });
    return at - module.signatures.begin();
  };
  std::stable_sort(module.functions.begin(), module.functions.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  RemoveUnreachable(module);
  if (module.description.empty())
    module.description =
        "converted by fusebox from " + module.source.substr(module.source.find_last_of('/') + 1);
  RecordFused(module);
  for (const Signature& s : module.signatures) FUSEBOX_TRY(RequireRanks(context, s));
  return Verify(module, Strictness::kWritable);
}

}  // namespace fusebox::converter
