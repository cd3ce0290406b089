// SPDX-License-Identifier: Apache-2.0
#include "host/tflite/options.h"

#include <cstring>
#include <limits>

#include "host/base/json.h"
#include "host/tflite/dtypes.h"
#include "host/tflite/tflite.h"

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

// Returns nothing if the field has its default value.
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

using flatbuffers::FlatBufferBuilder;

bool Fits(int64_t value, reflection::BaseType type) {
  const auto within = [&](auto sample) {
    using T = decltype(sample);
    return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
           value <= static_cast<int64_t>(std::numeric_limits<T>::max());
  };
  switch (type) {
    case reflection::Bool: return value == 0 || value == 1;
    case reflection::UByte: return within(uint8_t{});
    case reflection::Byte: return within(int8_t{});
    case reflection::Short: return within(int16_t{});
    case reflection::UShort: return within(uint16_t{});
    case reflection::Int: return within(int32_t{});
    case reflection::UInt: return within(uint32_t{});
    case reflection::ULong: return value >= 0;
    default: return true;
  }
}

class OptionWriter {
 public:
  OptionWriter(FlatBufferBuilder& out, const FunctionNumber& number) : out_(out), number_(number) {}

  // The integer that a field of this kind holds for the attribute.
  Result<int64_t> Integer(const OptionField& field, const AttrValue& value, reflection::BaseType type) const {
    std::optional<int64_t> integer;
    if (const auto* function = std::get_if<FunctionRef>(&value)) {
      integer = number_(function->name);
      if (!integer) return Invalid("function " + function->name + " does not exist");
    } else if (const auto* text = std::get_if<std::string>(&value);
               text != nullptr && field.names != nullptr) {
      integer = EnumValue(*field.names, *text);
      if (!integer) return Invalid("\"" + *text + "\" is not one of its values");
    } else if (const auto* dtype = std::get_if<DType>(&value); dtype != nullptr && field.is_dtype) {
      integer = TensorTypeOf(*dtype);
      if (!integer) return Unsupported("element type " + std::string(Name(*dtype)) + " is not in the format");
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      integer = *number;
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      integer = *flag ? 1 : 0;
    }
    if (!integer) return Invalid("has a value of the wrong kind: " + ToString(value));
    if (!Fits(*integer, type)) return Invalid("is out of range: " + ToString(value));
    return *integer;
  }

  Result<flatbuffers::uoffset_t> List(const OptionField& field, const AttrValue& value) {
    if (field.element == reflection::UByte) {
      const auto* bytes = std::get_if<std::string>(&value);
      if (bytes == nullptr) return Invalid("has a value of the wrong kind: " + ToString(value));
      out_.ForceVectorAlignment(bytes->size(), 1, 16);
      return out_.CreateVector(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()).o;
    }
    if (IsReal(field.element)) return Reals(value);
    std::vector<int64_t> integers;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      integers = *list;
    } else if (const auto* shape = std::get_if<Shape>(&value); shape != nullptr && shape->ranked()) {
      integers = shape->dims();
    } else if (const auto* names = std::get_if<std::vector<std::string>>(&value);
               names != nullptr && field.names != nullptr) {
      for (const std::string& name : *names) {
        FUSEBOX_ASSIGN(integers.emplace_back(), EnumNumber(field, name));
      }
    } else if (const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&value);
               map != nullptr && field.is_function) {
      for (size_t i = 0; *map != nullptr && i < (*map)->size(); ++i) {
        const AttrValue* entry = (*map)->Find(std::to_string(i));
        if (entry == nullptr) return Invalid("lacks entry " + std::to_string(i));
        FUSEBOX_ASSIGN(integers.emplace_back(), Integer(field, *entry, field.element));
      }
    } else {
      return Invalid("has a value of the wrong kind: " + ToString(value));
    }
    for (const int64_t integer : integers) {
      if (!Fits(integer, field.element)) return Invalid("is out of range: " + std::to_string(integer));
    }
    return Integers(field.element, integers);
  }

  void Scalar(const OptionField& field, int64_t value) {
    const auto standard = field.default_integer;
    const auto add = [&](auto sample) {
      using T = decltype(sample);
      out_.AddElement<T>(field.offset, static_cast<T>(value), static_cast<T>(standard));
    };
    switch (flatbuffers::GetTypeSize(field.type)) {
      case 1: return add(int8_t{});
      case 2: return add(int16_t{});
      case 4: return add(int32_t{});
      default: return add(int64_t{});
    }
  }

  Status Real(const OptionField& field, const AttrValue& value) {
    const auto* integer = std::get_if<int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    if (integer == nullptr && real == nullptr)
      return Invalid("has a value of the wrong kind: " + ToString(value));
    const double number = real != nullptr ? *real : static_cast<double>(*integer);
    out_.AddElement<float>(field.offset, static_cast<float>(number), static_cast<float>(field.default_real));
    return {};
  }

 private:
  static Result<int64_t> EnumNumber(const OptionField& field, const std::string& name) {
    if (const auto value = EnumValue(*field.names, name)) return *value;
    // A value that our schema has no name for was read as its number.
    if (!name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos)
      return std::stoll(name);
    return Invalid("\"" + name + "\" is not one of its values");
  }

  Result<flatbuffers::uoffset_t> Reals(const AttrValue& value) {
    const auto* list = std::get_if<std::vector<double>>(&value);
    if (list == nullptr) return Invalid("has a value of the wrong kind: " + ToString(value));
    return out_.CreateVector(std::vector<float>(list->begin(), list->end())).o;
  }

  flatbuffers::uoffset_t Integers(reflection::BaseType type, const std::vector<int64_t>& values) {
    switch (flatbuffers::GetTypeSize(type)) {
      case 1: return out_.CreateVector(std::vector<int8_t>(values.begin(), values.end())).o;
      case 2: return out_.CreateVector(std::vector<int16_t>(values.begin(), values.end())).o;
      case 4: return out_.CreateVector(std::vector<int32_t>(values.begin(), values.end())).o;
      default: return out_.CreateVector(values).o;
    }
  }

  FlatBufferBuilder& out_;
  const FunctionNumber& number_;
};

Status CheckNames(const OptionTable& table, const Attrs& attrs) {
  const std::vector<std::string> known = OptionFields(table.name);
  for (const auto& [name, value] : attrs) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Invalid("attribute " + name + " is not a field of " + table.name + DidYouMean(name, known));
    }
  }
  return {};
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

namespace {

// Returns nothing if the field is absent or has its default value.
Result<AttrValue> ReadField(const flatbuffers::Table& table, const OptionField& field,
                            const std::vector<std::string>& function_names) {
  if (field.type == reflection::String) {
    const auto* text = table.GetPointer<const flatbuffers::String*>(field.offset);
    return text == nullptr ? AttrValue() : AttrValue(text->str());
  }
  if (field.type == reflection::Vector) {
    const auto* list = table.GetPointer<const flatbuffers::VectorOfAny*>(field.offset);
    return list == nullptr ? AttrValue() : ReadList(*list, field, function_names);
  }
  const uint8_t* const at = table.GetAddressOf(field.offset);
  if (at == nullptr && !field.is_function) return AttrValue();
  return ReadScalarField(at, field, function_names);
}

}  // namespace

Result<Attrs> ReadOptionTable(const flatbuffers::Table& table, const OptionTable& schema,
                              const std::vector<std::string>& function_names) {
  Attrs attrs;
  for (const OptionField& field : schema.fields) {
    auto value = ReadField(table, field, function_names);
    if (!value) return std::unexpected(std::move(value.error()).At(field.name));
    if (!std::holds_alternative<std::monostate>(*value)) attrs.Set(field.name, *std::move(value));
  }
  return attrs;
}

Result<flatbuffers::Offset<void>> WriteOptionTable(FlatBufferBuilder& out, const OptionTable& table,
                                                   const Attrs& attrs, const FunctionNumber& number) {
  FUSEBOX_TRY(CheckNames(table, attrs));
  OptionWriter writer(out, number);
  // Objects that a table points to are written before the table.
  std::map<std::string_view, flatbuffers::uoffset_t> children;
  for (const OptionField& field : table.fields) {
    const AttrValue* value = attrs.Find(field.name);
    if (value == nullptr) continue;
    if (field.type == reflection::String) {
      const auto* text = std::get_if<std::string>(value);
      if (text == nullptr)
        return Invalid(field.name + ": has a value of the wrong kind: " + ToString(*value));
      children[field.name] = out.CreateString(*text).o;
    } else if (field.type == reflection::Vector) {
      FUSEBOX_ASSIGN(children[field.name], writer.List(field, *value).At(field.name));
    }
  }
  const auto start = out.StartTable();
  Status status;
  for (const OptionField& field : table.fields) {
    const AttrValue* value = attrs.Find(field.name);
    const auto child = children.find(field.name);
    if (child != children.end()) {
      out.AddOffset(field.offset, flatbuffers::Offset<void>(child->second));
    } else if (value == nullptr) {
      if (field.is_function && field.type != reflection::Vector) writer.Scalar(field, -1);
    } else if (IsReal(field.type)) {
      if (Status real = writer.Real(field, *value); !real) status = std::move(real).At(field.name);
    } else {
      const Result<int64_t> integer = writer.Integer(field, *value, field.type);
      if (!integer) status = std::unexpected(Error(integer.error()).At(field.name));
      if (integer) writer.Scalar(field, *integer);
    }
  }
  const auto end = out.EndTable(start);
  FUSEBOX_TRY(status);
  return flatbuffers::Offset<void>(end);
}

Status CheckOptions(Op op, const Attrs& attrs) {
  if (attrs.empty()) return {};
  const OptionTable* const table = TableOf(op);
  if (table == nullptr) return Invalid("has attributes " + ToString(attrs) + ", but its op has no options");
  FlatBufferBuilder scratch;
  const auto written =
      WriteOptionTable(scratch, *table, attrs, [](std::string_view) { return std::optional(0); });
  if (!written) return std::unexpected(written.error());
  return {};
}

}  // namespace fusebox::tflite
