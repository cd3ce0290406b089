// SPDX-License-Identifier: Apache-2.0
#include "host/graph/flex.h"

#include <flatbuffers/flexbuffers.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace fusebox {
namespace {

constexpr int kMaxDepth = 32;

Attrs ReadMap(flexbuffers::Map map, int depth);

bool IsListOf(const flexbuffers::Vector& vector, bool (flexbuffers::Reference::*test)() const) {
  for (size_t i = 0; i < vector.size(); ++i) {
    if (!(vector[i].*test)()) return false;
  }
  return true;
}

template <class T, class List, class F>
std::vector<T> Collect(const List& list, F&& get) {
  std::vector<T> values;
  values.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) values.push_back(get(list[i]));
  return values;
}

int64_t AsInt(const flexbuffers::Reference& value) { return value.AsInt64(); }
double AsReal(const flexbuffers::Reference& value) { return value.AsDouble(); }
std::string AsText(const flexbuffers::Reference& value) {
  const flexbuffers::String text = value.AsString();
  return {text.c_str(), text.length()};
}

AttrValue ReadTyped(const flexbuffers::Reference& value) {
  flexbuffers::TypedVector list = value.AsTypedVector();
  switch (list.ElementType()) {
    case flexbuffers::FBT_INT:
    case flexbuffers::FBT_UINT: return Collect<int64_t>(list, AsInt);
    case flexbuffers::FBT_FLOAT: return Collect<double>(list, AsReal);
    case flexbuffers::FBT_STRING:
    case flexbuffers::FBT_KEY: return Collect<std::string>(list, AsText);
    default: return {};
  }
}

AttrValue ReadFixed(const flexbuffers::Reference& value) {
  flexbuffers::FixedTypedVector list = value.AsFixedTypedVector();
  if (list.ElementType() == flexbuffers::FBT_FLOAT) return Collect<double>(list, AsReal);
  return Collect<int64_t>(list, AsInt);
}

AttrValue ReadValue(const flexbuffers::Reference& value, int depth) {
  if (value.IsBool()) return value.AsBool();
  if (value.IsUInt() && value.AsUInt64() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return {};
  if (value.IsIntOrUint()) return AsInt(value);
  if (value.IsFloat()) return AsReal(value);
  if (value.IsString()) return AsText(value);
  if (value.IsKey()) return std::string(value.AsKey());
  // Before vectors: IsVector is true for maps too.
  if (value.IsMap()) {
    if (depth >= kMaxDepth) return {};
    return std::make_shared<const Attrs>(ReadMap(value.AsMap(), depth + 1));
  }
  if (value.IsFixedTypedVector()) return ReadFixed(value);
  if (value.IsTypedVector()) return ReadTyped(value);
  if (!value.IsUntypedVector()) return {};
  const flexbuffers::Vector list = value.AsVector();
  if (IsListOf(list, &flexbuffers::Reference::IsIntOrUint)) return Collect<int64_t>(list, AsInt);
  if (IsListOf(list, &flexbuffers::Reference::IsNumeric)) return Collect<double>(list, AsReal);
  if (IsListOf(list, &flexbuffers::Reference::IsString)) return Collect<std::string>(list, AsText);
  return {};
}

Attrs ReadMap(flexbuffers::Map map, int depth) {
  Attrs attrs;
  const flexbuffers::TypedVector keys = map.Keys();
  const flexbuffers::Vector values = map.Values();
  for (size_t i = 0; i < keys.size() && i < values.size(); ++i)
    attrs.Set(keys[i].AsKey(), ReadValue(values[i], depth));
  return attrs;
}

void WriteMap(flexbuffers::Builder& out, const Attrs& attrs);

struct Writer {
  flexbuffers::Builder& out;
  void operator()(std::monostate) const { out.Null(); }
  void operator()(bool v) const { out.Bool(v); }
  void operator()(int64_t v) const { out.Int(v); }
  void operator()(double v) const { out.Double(v); }
  void operator()(const std::string& v) const { out.String(v); }
  void operator()(DType v) const { out.String(std::string(Name(v))); }
  void operator()(const Shape& v) const { (*this)(v.dims()); }
  void operator()(const FunctionRef& v) const { out.String(v.name); }
  void operator()(const std::vector<int64_t>& v) const { out.Vector(v.data(), v.size()); }
  void operator()(const std::vector<double>& v) const { out.Vector(v.data(), v.size()); }
  void operator()(const std::vector<std::string>& v) const {
    const size_t start = out.StartVector();
    for (const std::string& text : v) out.String(text);
    out.EndVector(start, false, false);
  }
  void operator()(const Tensor& v) const {
    const size_t start = out.StartMap();
    out.Key("data");
    out.Blob(v.data.data(), v.data.size());
    out.Key("dtype");
    (*this)(v.type.dtype);
    out.Key("shape");
    (*this)(v.type.shape);
    out.EndMap(start);
  }
  void operator()(const std::shared_ptr<const Attrs>& v) const { WriteMap(out, v == nullptr ? Attrs() : *v); }
};

void WriteMap(flexbuffers::Builder& out, const Attrs& attrs) {
  const size_t start = out.StartMap();
  for (const auto& [key, value] : attrs) {
    out.Key(key);
    std::visit(Writer{out}, value);
  }
  out.EndMap(start);
}

// The kind that readers with AsVector and AsTypedVector see. Signedness and width of integers do not matter.
int Kind(const flexbuffers::Reference& value) {
  if (value.IsIntOrUint()) return -1;
  if (value.IsFloat()) return -2;
  return value.GetType();
}

bool SameMaps(const flexbuffers::Map& a, const flexbuffers::Map& b, int depth) {
  const flexbuffers::Vector left = a.Values();
  const flexbuffers::Vector right = b.Values();
  if (left.size() != right.size() || depth > kMaxDepth) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (Kind(left[i]) != Kind(right[i]) || left[i].IsNull()) return false;
    if (left[i].IsMap() && !SameMaps(left[i].AsMap(), right[i].AsMap(), depth + 1)) return false;
  }
  return true;
}

Result<flexbuffers::Reference> Root(std::string_view bytes, std::vector<uint64_t>& aligned) {
  // At least three bytes: a value, its type and its width. Checked before copying, since other options may be
  // large.
  const size_t size = bytes.size();
  if (size < 3) return Invalid("not a FlexBuffer map");
  if (static_cast<uint8_t>(bytes[size - 2]) >> 2 != flexbuffers::FBT_MAP)
    return Invalid("not a FlexBuffer map");
  aligned.resize(size / 8 + 1);
  std::memcpy(aligned.data(), bytes.data(), size);
  const auto* data = reinterpret_cast<const uint8_t*>(aligned.data());
  std::vector<uint8_t> seen;
  if (!flexbuffers::VerifyBuffer(data, size, &seen)) return Invalid("not a FlexBuffer map");
  const flexbuffers::Reference root = flexbuffers::GetRoot(data, size);
  return root;
}

}  // namespace

Result<Attrs> ReadFlexMap(std::string_view bytes) {
  std::vector<uint64_t> aligned;
  FUSEBOX_ASSIGN(const flexbuffers::Reference root, Root(bytes, aligned));
  return ReadMap(root.AsMap(), 0);
}

std::string WriteFlexMap(const Attrs& attrs) {
  flexbuffers::Builder out;
  WriteMap(out, attrs);
  out.Finish();
  const std::vector<uint8_t>& bytes = out.GetBuffer();
  return {bytes.begin(), bytes.end()};
}

bool FlexMapEquals(std::string_view bytes, const Attrs& attrs) {
  const std::string written = WriteFlexMap(attrs);
  if (written == bytes) return true;
  std::vector<uint64_t> left;
  std::vector<uint64_t> right;
  const auto a = Root(bytes, left);
  const auto b = Root(written, right);
  if (!a || !b) return false;
  return SameMaps(a->AsMap(), b->AsMap(), 0) && ReadMap(a->AsMap(), 0) == ReadMap(b->AsMap(), 0);
}

}  // namespace fusebox
