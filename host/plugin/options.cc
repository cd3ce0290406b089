// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

constexpr std::string_view kListKinds = "a list must hold integers, numbers or strings, all of one kind";

template <class T>
std::expected<AttrValue, OptionsError> ListFromJson(const json& list) {
  std::vector<T> values;
  for (const json& element : list) values.push_back(element.get<T>());
  return AttrValue(std::move(values));
}

bool FitsInt64(const json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
}

std::expected<AttrValue, OptionsError> ValueFromJson(const json& value) {
  const auto all = [&](auto&& is) { return std::all_of(value.begin(), value.end(), is); };
  if (value.is_boolean()) return AttrValue(value.get<bool>());
  if (value.is_number_integer()) {
    if (!FitsInt64(value)) return std::unexpected(OptionsError{"", "the integer is too large"});
    return AttrValue(value.get<int64_t>());
  }
  if (value.is_number()) return AttrValue(value.get<double>());
  if (value.is_string()) return AttrValue(value.get<std::string>());
  if (value.is_array()) {
    if (all(FitsInt64)) return ListFromJson<int64_t>(value);
    if (all([](const json& v) { return v.is_number(); })) return ListFromJson<double>(value);
    if (all([](const json& v) { return v.is_string(); })) return ListFromJson<std::string>(value);
    return std::unexpected(OptionsError{"", std::string(kListKinds)});
  }
  if (!value.is_object()) return std::unexpected(OptionsError{"", "null is not allowed"});
  auto map = AttrsFromJson(value);
  if (!map) return std::unexpected(std::move(map).error());
  return AttrValue(std::make_shared<const Attrs>(*std::move(map)));
}

struct ToJson {
  json operator()(std::monostate) const { return nullptr; }
  json operator()(DType v) const { return std::string(Name(v)); }
  json operator()(const Shape& v) const { return v.ranked() ? json(v.dims()) : json(nullptr); }
  json operator()(const Tensor& v) const { return ToString(v.type); }
  json operator()(const FunctionRef& v) const { return v.name; }
  json operator()(const std::shared_ptr<const Attrs>& v) const {
    return v ? JsonFromAttrs(*v) : json::object();
  }
  json operator()(const auto& v) const { return v; }
};

}  // namespace

std::expected<Attrs, OptionsError> AttrsFromJson(const json& object) {
  Attrs attrs;
  for (const auto& [key, member] : object.items()) {
    auto value = ValueFromJson(member);
    if (!value) {
      value.error().pointer.insert(0, "/" + EscapePointer(key));
      return std::unexpected(std::move(value).error());
    }
    attrs.Set(key, *std::move(value));
  }
  return attrs;
}

json JsonFromAttrs(const Attrs& attrs) {
  json object = json::object();
  for (const auto& [key, value] : attrs) object[key] = std::visit(ToJson(), value);
  return object;
}

}  // namespace fusebox
