// SPDX-License-Identifier: Apache-2.0
#include "host/plugin/tensor_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace fusebox {
namespace {

using nlohmann::json;

std::optional<int64_t> ParseDim(std::string_view text) {
  if (text == "?") return Shape::kUnknown;
  int64_t dim = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
  if (error != std::errc() || end != text.data() + text.size() || dim < 0 || dim > INT32_MAX)
    return std::nullopt;
  return dim;
}

// The elements of nested lists, in order.
void Flatten(const json& value, std::vector<json>& out) {
  if (!value.is_array()) return out.push_back(value);
  for (const json& element : value) Flatten(element, out);
}

// Appends one element. Returns false if the type cannot hold it.
template <class T>
bool Append(const json& element, std::string& bytes) {
  T value{};
  if constexpr (std::is_same_v<T, bool>) {
    if (!element.is_boolean()) return false;
    value = element.get<bool>();
  } else {
    if (!element.is_number()) return false;
    const auto number = element.get<double>();
    if constexpr (std::is_integral_v<T>) {
      if (!element.is_number_integer() || number < static_cast<double>(std::numeric_limits<T>::min()) ||
          number > static_cast<double>(std::numeric_limits<T>::max()))
        return false;
    }
    value = element.get<T>();
  }
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return true;
}

using AppendElement = bool (*)(const json&, std::string&);

AppendElement AppendOf(DType type) {
  switch (type) {
    case DType::kF32: return Append<float>;
    case DType::kF64: return Append<double>;
    case DType::kI8: return Append<int8_t>;
    case DType::kI16: return Append<int16_t>;
    case DType::kI32: return Append<int32_t>;
    case DType::kI64: return Append<int64_t>;
    case DType::kU8: return Append<uint8_t>;
    case DType::kBool: return Append<bool>;
    default: return nullptr;
  }
}

Result<Tensor> FromElements(const Type& type, std::span<const json> elements) {
  const AppendElement append = AppendOf(type.dtype);
  if (append == nullptr) return Unsupported("values of this type are not supported; use npy");
  std::string bytes;
  for (const json& element : elements) {
    if (!append(element, bytes)) return Invalid(element.dump() + " is no " + std::string(Name(type.dtype)));
  }
  return Tensor{type, Buffer::Copy(std::as_bytes(std::span(bytes)))};
}

}  // namespace

Result<Type> ParseType(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Invalid("\"" + text + "\" is no type (" + why + "); use for example f32[2,3], f32[?,3] or i32[]");
  };
  const size_t open = text.find('[');
  if (open == text.npos || !text.ends_with(']')) return wrong("no dims in brackets");
  const auto dtype = ParseDType(text.substr(0, open));
  if (!dtype) return wrong(text.substr(0, open) + " is no element type");
  std::vector<int64_t> dims;
  std::string_view list = std::string_view(text).substr(open + 1, text.size() - open - 2);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const auto dim = ParseDim(list.substr(0, comma));
    if (!dim || comma + 1 == list.size()) return wrong("a dim is a number or ?");
    dims.push_back(*dim);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return Type{*dtype, Shape(dims)};
}

Result<Tensor> TensorFromJson(const json& value) {
  if (!value.contains("type")) return Invalid("type is missing; use for example f32[2,3]");
  FUSEBOX_ASSIGN(const Type type, ParseType(value["type"].get<std::string>()));
  const auto count = type.shape.element_count();
  if (!count || *count > kMaxJsonElements) return Invalid(ToString(type) + ": has unknown or too large dims");
  std::vector<json> elements;
  if (value.contains("fill")) elements.assign(static_cast<size_t>(*count), value["fill"]);
  else Flatten(value["values"], elements);
  if (static_cast<int64_t>(elements.size()) != *count)
    return Invalid(std::to_string(elements.size()) + " values, but " + ToString(type) + " has " +
                   std::to_string(*count));
  return FromElements(type, elements);
}

}  // namespace fusebox
