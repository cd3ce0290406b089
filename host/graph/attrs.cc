// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "host/graph/types.h"

namespace fusebox {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escaped[8];
    const bool plain = c >= ' ' && c < 127 && c != '"' && c != '\\';
    if (!plain) std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
    quoted += plain ? std::string(1, c) : std::string(escaped);
  }
  return quoted + "\"";
}

bool IsWord(std::string_view text) {
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) return false;
  }
  return !text.empty();
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  if (std::string_view(text).find_first_of(".en") == std::string_view::npos) return std::string(text) + ".0";
  return text;
}

template <class T, class F>
std::string List(const std::vector<T>& items, F&& to_text) {
  std::string text = "[";
  for (const T& item : items) {
    if (text.size() > 1) text += ',';
    text += to_text(item);
  }
  return text + "]";
}

std::string_view NameOf(const std::pair<std::string, AttrValue>& attr) { return attr.first; }

}  // namespace

const AttrValue* Attrs::Find(std::string_view name) const {
  constexpr size_t kFew = 8;  // for these, lengths tell names apart faster than a search by order
  if (values_.size() <= kFew) {
    for (const auto& [key, value] : values_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  const auto found = std::ranges::lower_bound(values_, name, {}, NameOf);
  return found == values_.end() || found->first != name ? nullptr : &found->second;
}

AttrValue& Attrs::Slot(std::string name) {
  if (values_.empty()) values_.reserve(5);  // as many as a convolution has
  if (values_.empty() || values_.back().first < name)
    return values_.emplace_back(std::move(name), std::monostate()).second;
  auto at = std::ranges::lower_bound(values_, std::string_view(name), {}, NameOf);
  if (at == values_.end() || at->first != name) at = values_.emplace(at, std::move(name), AttrValue());
  return at->second;
}

void Attrs::Erase(std::string_view name) {
  const auto found = std::ranges::lower_bound(values_, name, {}, NameOf);
  if (found != values_.end() && found->first == name) values_.erase(found);
}

int64_t Attrs::i64(std::string_view name, int64_t otherwise) const {
  const AttrValue* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* integer = std::get_if<int64_t>(value)) return *integer;
  if (const auto* boolean = std::get_if<bool>(value)) return *boolean ? 1 : 0;
  return otherwise;
}

double Attrs::f64(std::string_view name, double otherwise) const {
  const AttrValue* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  return otherwise;
}

bool Attrs::b(std::string_view name, bool otherwise) const {
  const AttrValue* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* boolean = std::get_if<bool>(value)) return *boolean;
  const auto* integer = std::get_if<int64_t>(value);
  return integer != nullptr && (*integer == 0 || *integer == 1) ? *integer == 1 : otherwise;
}

std::string Attrs::str(std::string_view name, std::string_view otherwise) const {
  const AttrValue* value = Find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string(otherwise) : *text;
}

std::vector<int64_t> Attrs::i64s(std::string_view name) const {
  const AttrValue* value = Find(name);
  if (value == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<int64_t>>(value)) return *list;
  const auto* shape = std::get_if<Shape>(value);
  return shape == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(shape->dims());
}

const FunctionRef* Attrs::function(std::string_view name) const {
  const AttrValue* value = Find(name);
  return value == nullptr ? nullptr : std::get_if<FunctionRef>(value);
}

bool Attrs::operator==(const Attrs& other) const {
  if (size() != other.size()) return false;
  for (auto a = begin(), b = other.begin(); a != end(); ++a, ++b) {
    if (a->first != b->first) return false;
    using Map = std::shared_ptr<const Attrs>;
    const auto* left = std::get_if<Map>(&a->second);
    const auto* right = std::get_if<Map>(&b->second);
    const bool maps = left != nullptr && right != nullptr && *left != nullptr && *right != nullptr;
    if (maps ? !(**left == **right) : !(a->second == b->second)) return false;
  }
  return true;
}

std::string ToString(const AttrValue& value) {
  return std::visit(
      Overloaded{
          [](std::monostate) { return std::string("none"); },
          [](bool v) { return std::string(v ? "true" : "false"); },
          [](int64_t v) { return std::to_string(v); },
          [](double v) { return Number(v); },
          [](const std::string& v) { return IsWord(v) ? v : Quoted(v); },
          [](DType v) { return std::string(Name(v)); },
          [](const Shape& v) { return "shape" + ToString(v); },
          [](const Tensor& v) { return "tensor:" + ToString(v.type); },
          [](const std::vector<int64_t>& v) { return List(v, [](int64_t i) { return std::to_string(i); }); },
          [](const std::vector<double>& v) { return List(v, Number); },
          [](const std::vector<std::string>& v) { return List(v, Quoted); },
          [](const FunctionRef& v) { return "@" + v.name; },
          [](const std::shared_ptr<const Attrs>& v) { return v ? ToString(*v) : std::string("{}"); },
      },
      value);
}

std::string ToString(const Attrs& attrs) {
  std::string text = "{";
  for (const auto& [name, value] : attrs) {
    if (text.size() > 1) text += ", ";
    text += (IsWord(name) ? name : Quoted(name)) + "=" + ToString(value);
  }
  return text + "}";
}

}  // namespace fusebox
