// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "host/base/json.h"
#include "host/tflite/dtypes.h"
#include "host/tflite/option_schema.h"
#include "host/tflite/tflite.h"

namespace fusebox::tflite {
namespace {

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

class Writer {
 public:
  Writer(FlatBufferBuilder& out, const FunctionNumber& number) : out_(out), number_(number) {}

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

Result<flatbuffers::Offset<void>> WriteOptionTable(FlatBufferBuilder& out, const OptionTable& table,
                                                   const Attrs& attrs, const FunctionNumber& number) {
  FUSEBOX_TRY(CheckNames(table, attrs));
  Writer writer(out, number);
  // What a table points to is written before the table.
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
