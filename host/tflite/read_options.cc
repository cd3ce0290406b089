// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "host/tflite/dtypes.h"
#include "host/tflite/option_schema.h"

namespace fusebox::tflite {
namespace {

// The verifier does not promise that elements of vectors are aligned.
template <class T>
T ReadScalar(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

int64_t Integer(const uint8_t* at, reflection::BaseType type) {
  switch (type) {
    case reflection::Bool:
    case reflection::UByte:
    case reflection::UType: return *at;
    case reflection::Byte: return static_cast<int8_t>(*at);
    case reflection::Short: return ReadScalar<int16_t>(at);
    case reflection::UShort: return ReadScalar<uint16_t>(at);
    case reflection::Int: return ReadScalar<int32_t>(at);
    case reflection::UInt: return ReadScalar<uint32_t>(at);
    default: return static_cast<int64_t>(ReadScalar<uint64_t>(at));
  }
}

double Real(const uint8_t* at, reflection::BaseType type) {
  return type == reflection::Float ? static_cast<double>(ReadScalar<float>(at)) : ReadScalar<double>(at);
}

Result<FunctionRef> ReferenceTo(int64_t number, const std::vector<std::string>& names) {
  if (number < 0 || static_cast<size_t>(number) >= names.size()) {
    return Invalid("subgraph " + std::to_string(number) + " does not exist");
  }
  return FunctionRef{names[static_cast<size_t>(number)]};
}

// Nothing: the field stands at its default.
Result<AttrValue> ReadScalarField(const uint8_t* at, const OptionField& field,
                                  const std::vector<std::string>& names) {
  if (IsReal(field.type)) {
    const double value = at == nullptr ? field.default_real : Real(at, field.type);
    return value == field.default_real ? AttrValue() : AttrValue(value);
  }
  const int64_t value = at == nullptr ? field.default_integer : Integer(at, field.type);
  if (field.is_function) {
    if (value == -1) return AttrValue();  // says "none"
    FUSEBOX_ASSIGN(FunctionRef function, ReferenceTo(value, names));
    return AttrValue(std::move(function));
  }
  if (value == field.default_integer) return AttrValue();
  if (field.type == reflection::Bool) return AttrValue(value != 0);
  if (field.is_dtype && DTypeOf(static_cast<int>(value)) != DType::kNone)
    return AttrValue(DTypeOf(static_cast<int>(value)));
  if (field.names != nullptr) {
    if (auto name = EnumName(*field.names, value)) return AttrValue(*std::move(name));
  }
  return AttrValue(value);
}

Result<AttrValue> ReadList(const flatbuffers::VectorOfAny& list, const OptionField& field,
                           const std::vector<std::string>& names) {
  const size_t stride = flatbuffers::GetTypeSize(field.element);
  const auto at = [&](size_t i) { return list.Data() + i * stride; };
  if (field.element == reflection::UByte)
    return AttrValue(std::string(reinterpret_cast<const char*>(list.Data()), list.size()));
  if (IsReal(field.element)) {
    std::vector<double> values;
    for (size_t i = 0; i < list.size(); ++i) values.push_back(Real(at(i), field.element));
    return AttrValue(std::move(values));
  }
  std::vector<int64_t> values;
  for (size_t i = 0; i < list.size(); ++i) values.push_back(Integer(at(i), field.element));
  if (field.is_function) {
    auto functions = std::make_shared<Attrs>();
    for (size_t i = 0; i < values.size(); ++i) {
      FUSEBOX_ASSIGN(FunctionRef function, ReferenceTo(values[i], names));
      functions->Set(std::to_string(i), std::move(function));
    }
    return AttrValue(std::shared_ptr<const Attrs>(std::move(functions)));
  }
  if (field.names == nullptr) return AttrValue(std::move(values));
  std::vector<std::string> texts;
  for (const int64_t value : values)
    texts.push_back(EnumName(*field.names, value).value_or(std::to_string(value)));
  return AttrValue(std::move(texts));
}

}  // namespace

bool HasNewerFields(const flatbuffers::Table& table, const OptionTable& schema) {
  const uint8_t* vtable = table.GetVTable();
  const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  for (uint16_t offset = schema.end; offset + 2 <= size; offset = static_cast<uint16_t>(offset + 2)) {
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + offset) != 0) return true;
  }
  return false;
}

Result<Attrs> ReadOptionTable(const flatbuffers::Table& table, const OptionTable& schema,
                              const std::vector<std::string>& function_names) {
  Attrs attrs;
  for (const OptionField& field : schema.fields) {
    AttrValue value;
    if (field.type == reflection::String) {
      const auto* text = table.GetPointer<const flatbuffers::String*>(field.offset);
      if (text != nullptr) value = text->str();
    } else if (field.type == reflection::Vector) {
      const auto* list = table.GetPointer<const flatbuffers::VectorOfAny*>(field.offset);
      if (list != nullptr) {
        FUSEBOX_ASSIGN(value, ReadList(*list, field, function_names).At(field.name));
      }
    } else {
      const uint8_t* const at = table.GetAddressOf(field.offset);
      if (at == nullptr && !field.is_function) continue;
      FUSEBOX_ASSIGN(value, ReadScalarField(at, field, function_names).At(field.name));
    }
    if (!std::holds_alternative<std::monostate>(value)) attrs.Set(field.name, std::move(value));
  }
  return attrs;
}

}  // namespace fusebox::tflite
