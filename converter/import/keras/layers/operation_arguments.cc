// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

const Given* FindArgument(LayerCall& c, size_t position, Names names) {
  if (position < c.args().size()) return &c.args()[position];
  for (const char* name : names)
    if (const Given* given = c.Keyword(name)) return given;
  return nullptr;
}

namespace {

// Flattens the list formats of Keras. Computed values are rejected; they must not be treated as missing.
json Plain(LayerCall& c, const Given& given) {
  if (const auto* plain = std::get_if<json>(&given.value)) return *plain;
  json out = json::array();
  if (const auto* list = std::get_if<std::vector<Given>>(&given.value)) {
    for (const Given& item : *list) out.push_back(Plain(c, item));
  } else {
    c.emit().Refuse("an argument that depends on the input");
  }
  return out;
}

// Tuples and arrays are stored as objects.
json Unpacked(const json& from) {
  const json class_name = from.is_object() ? from.value("class_name", json()) : json();
  if (class_name == "__tuple__") return from.value("items", json());
  const bool array = class_name == "__numpy__" || class_name == "__tensor__";
  const json config = array ? from.value("config", json()) : json();
  if (config.is_object()) return config.value("value", json());
  if (from.is_object() && from.value("type", json()) == "ndarray") return from.value("value", json());
  return from;
}

void RefuseArgument(LayerCall& c, Names names, const json& plain) {
  c.emit().Refuse(std::string("its ") + *names.begin() + " " + plain.dump().substr(0, 80));
}

}  // namespace

json PlainArgument(LayerCall& c, size_t position, Names names) {
  json out;
  if (const Given* given = FindArgument(c, position, names)) {
    out = Plain(c, *given);
  } else {
    for (const char* name : names)
      if (out.is_null() && c.Has(name)) out = c.config().at(name);
  }
  return Unpacked(out);
}

std::optional<std::vector<int64_t>> IntsArgument(LayerCall& c, size_t position, Names names) {
  json plain = PlainArgument(c, position, names);
  if (plain.is_null()) return std::nullopt;
  if (plain.is_number_integer()) plain = json::array({plain});
  const auto is_number = [](const json& item) { return item.is_number_integer(); };
  if (plain.is_array() && std::ranges::all_of(plain, is_number)) return plain.get<std::vector<int64_t>>();
  RefuseArgument(c, names, plain);
  return std::nullopt;
}

int64_t IntArgument(LayerCall& c, size_t position, Names names, int64_t otherwise) {
  const auto numbers = IntsArgument(c, position, names);
  if (!numbers) return otherwise;
  if (numbers->size() == 1) return numbers->front();
  c.emit().Refuse(std::string("its ") + *names.begin() + " is not one number");
  return otherwise;
}

double NumberArgument(LayerCall& c, size_t position, Names names, double otherwise) {
  const json plain = PlainArgument(c, position, names);
  if (plain.is_number()) return plain.get<double>();
  if (!plain.is_null()) RefuseArgument(c, names, plain);
  return otherwise;
}

bool FlagArgument(LayerCall& c, size_t position, Names names) {
  const json plain = PlainArgument(c, position, names);
  if (plain.is_boolean()) return plain.get<bool>();
  if (plain.is_number_integer()) return plain != 0;  // Python allows integers as flags
  if (!plain.is_null()) RefuseArgument(c, names, plain);
  return false;
}

std::string TextArgument(LayerCall& c, size_t position, Names names, std::string_view otherwise) {
  const json plain = PlainArgument(c, position, names);
  if (plain.is_string()) return plain.get<std::string>();
  if (!plain.is_null()) RefuseArgument(c, names, plain);
  return std::string(otherwise);
}

ValueId TensorArgument(LayerCall& c, size_t position, Names names) {
  const Given* given = FindArgument(c, position, names);
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  if (!flow) c.emit().Refuse("its argument is not a tensor");
  return flow ? flow->value : kNoValue;
}

ValueId FloatArgument(LayerCall& c, size_t position, Names names) {
  return Operand(c, FindArgument(c, position, names), DType::kF32);
}

void Ignore(LayerCall& c, Names names) {
  for (const char* name : names) c.Keyword(name);
}

ValueId SizesArgument(LayerCall& c, size_t position, Names names, std::vector<int64_t>& known) {
  const Given* given = FindArgument(c, position, names);
  const auto* list = given ? std::get_if<std::vector<Given>>(&given->value) : nullptr;
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  const auto is_flow = [](const Given& item) { return std::holds_alternative<Flow>(item.value); };
  if (flow) {
    const int64_t count = c.emit().rank(flow->value) == 1 ? c.emit().dim(flow->value, 0) : -1;
    if (c.emit().ok() && (count < 0 || count > 8)) c.emit().Refuse("sizes of unknown number");
    if (c.emit().ok()) known.assign(static_cast<size_t>(count), Shape::kUnknown);
    return c.emit().Cast(flow->value, DType::kI32);
  }
  if (!list || std::ranges::none_of(*list, is_flow)) {
    const auto numbers = IntsArgument(c, position, names);
    if (!numbers) return kNoValue;
    known = *numbers;
    return c.emit().I32s(known);
  }
  std::vector<ValueId> sizes;
  for (const Given& item : *list) {
    const auto* plain = std::get_if<json>(&item.value);
    known.push_back(plain && plain->is_number_integer() ? plain->get<int64_t>() : Shape::kUnknown);
    sizes.push_back(Operand(c, &item, DType::kI32));
  }
  return c.emit().Op("Pack", sizes);
}

std::vector<int64_t> AxesOf(LayerCall& c, const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> out;
  for (const int64_t axis : axes) {
    out.push_back(axis < 0 ? axis + rank : axis);
    if (out.back() >= 0 && out.back() < rank) continue;
    if (c.emit().ok()) c.emit().Reject("its axis " + std::to_string(axis) + " does not exist");
    out.back() = 0;
  }
  return out;
}

namespace {

constexpr size_t kMaxRank = 8;
constexpr size_t kMaxNumbers = 1 << 20;

DType DTypeOf(const Given* given, LayerCall& c) {
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  return flow ? c.emit().dtype(flow->value) : DType::kNone;
}

bool HasFraction(const json& plain) {
  if (plain.is_array()) return std::ranges::any_of(plain, HasFraction);
  return plain.is_number_float();
}

// Keras 3 lists without tensors as plain JSON; null if the list contains a tensor.
json PlainLists(const Given& given) {
  if (const auto* plain = std::get_if<json>(&given.value)) return Unpacked(*plain);
  const auto* list = std::get_if<std::vector<Given>>(&given.value);
  if (!list) return {};
  json out = json::array();
  for (const Given& item : *list) out.push_back(PlainLists(item));
  return out;
}

// Returns false for other values than numbers, and for lists of unequal sizes at one depth.
bool Collect(const json& from, size_t depth, std::vector<int64_t>& dims, std::vector<double>& numbers) {
  if (from.is_number() || from.is_boolean()) {
    numbers.push_back(from.is_boolean() ? from.get<bool>() : from.get<double>());
    return depth == dims.size() && numbers.size() <= kMaxNumbers;
  }
  if (!from.is_array() || depth >= kMaxRank) return false;
  const auto size = static_cast<int64_t>(from.size());
  if (depth == dims.size() && numbers.empty()) dims.push_back(size);
  if (depth >= dims.size() || dims[depth] != size) return false;
  return std::ranges::all_of(from, [&](const json& i) { return Collect(i, depth + 1, dims, numbers); });
}

bool HasFraction(const Given* given) { return given && HasFraction(PlainLists(*given)); }

}  // namespace

namespace {

// The wider of two integer types; Keras 3 mixes integer types, TensorFlow does not.
DType Wider(DType a, DType b) {
  static constexpr std::array kWidening = {DType::kNone, DType::kBool, DType::kU8, DType::kI8,
                                           DType::kI16,  DType::kI32,  DType::kI64};
  return std::max(a, b, [](DType x, DType y) {
    return std::ranges::find(kWidening, x) < std::ranges::find(kWidening, y);
  });
}

bool HasNumber(const json& plain) {
  return plain.is_array() ? std::ranges::any_of(plain, HasNumber) : plain.is_number();
}

}  // namespace

DType CommonType(LayerCall& c, const Given* a, const Given* b, std::string_view op) {
  const DType x = DTypeOf(a, c);
  const DType y = DTypeOf(b, c);
  if (op == "RealDiv" || HasFraction(a) || HasFraction(b) || x == DType::kF32 || y == DType::kF32)
    return DType::kF32;
  if (c.keras() < 3) return x == DType::kNone ? y : x;
  const bool number = (a && HasNumber(PlainLists(*a))) || (b && HasNumber(PlainLists(*b)));
  return number && Wider(x, y) == DType::kBool ? DType::kI32 : Wider(x, y);
}

ValueId Numbers(LayerCall& c, const json& plain, DType type) {
  std::vector<int64_t> dims;
  std::vector<double> numbers;
  if (!Collect(plain, 0, dims, numbers)) {
    c.emit().Refuse("an operand that is neither a tensor nor a number");
    return kNoValue;
  }
  const bool whole = type == DType::kNone ? !HasFraction(plain) : type == DType::kI32 || type == DType::kI64;
  std::vector<int32_t> integers;
  for (const double number : numbers)
    integers.push_back(static_cast<int32_t>(std::clamp<double>(number, INT32_MIN, INT32_MAX)));
  const Tensor tensor = whole ? Tensor{{DType::kI32, Shape(dims)}, Buffer::Of<int32_t>(integers)}
                              : Tensor{{DType::kF32, Shape(dims)},
                                       Buffer::Of<float>(std::vector<float>(numbers.begin(), numbers.end()))};
  const ValueId made = c.emit().Const(tensor);
  return type == DType::kNone ? made : c.emit().Cast(made, type);
}

ValueId Operand(LayerCall& c, const Given* given, DType type) {
  if (given) {
    if (const auto* flow = std::get_if<Flow>(&given->value)) return c.emit().Cast(flow->value, type);
    const json plain = PlainLists(*given);
    const bool direct = type == DType::kF32 || type == DType::kI32 || type == DType::kNone;
    if (plain.is_number() && direct) return c.emit().Scalar(type, plain.get<double>());
    if (plain.is_array() || plain.is_number() || plain.is_boolean()) return Numbers(c, plain, type);
  }
  c.emit().Refuse("an operand that is neither a tensor nor a number");
  return kNoValue;
}

}  // namespace fusebox::keras
