// SPDX-License-Identifier: Apache-2.0
// TensorFlowOpLayer of TensorFlow 2.0 to 2.3: one graph node as a layer, stored as a NodeDef in JSON.
#include <algorithm>
#include <map>

#include "converter/import/keras/layers/operation.h"
#include "host/base/json.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

std::optional<int64_t> WholeNumber(const json& from) {
  if (from.is_number_integer()) return from.get<int64_t>();
  if (!from.is_string() || from.get<std::string>().size() > 18) return {};
  const std::string text = from.get<std::string>();  // 64-bit integers are stored as text
  const size_t digits = text.starts_with('-') ? 1 : 0;
  if (text.size() == digits || text.find_first_not_of("0123456789", digits) != std::string::npos) return {};
  return std::stoll(text);
}

// Decodes base64.
std::string Bytes(const std::string& text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return out;
}

std::optional<DType> TypeNamed(const json& name) {
  static const std::map<std::string, DType> types = {{"DT_FLOAT", DType::kF32}, {"DT_INT32", DType::kI32},
                                                     {"DT_INT64", DType::kI64}, {"DT_BOOL", DType::kBool},
                                                     {"DT_UINT8", DType::kU8},  {"DT_INT8", DType::kI8},
                                                     {"DT_HALF", DType::kF32},  {"DT_DOUBLE", DType::kF32}};
  const auto it = types.find(name.is_string() ? name.get<std::string>() : "");
  return it == types.end() ? std::nullopt : std::optional(it->second);
}

// Converts an AttrValue: {"i": "1"}, {"list": {"i": [...]}}. Other kinds are skipped; ops that need them
// fail.
void Put(Attrs& attrs, const std::string& name, const json& value) {
  if (!value.is_object()) return;
  if (const auto b = value.find("b"); b != value.end() && b->is_boolean()) attrs.Set(name, b->get<bool>());
  if (const auto i = value.find("i"); i != value.end())
    if (const auto number = WholeNumber(*i)) attrs.Set(name, *number);
  if (const auto f = value.find("f"); f != value.end() && f->is_number()) attrs.Set(name, f->get<double>());
  if (const auto s = value.find("s"); s != value.end() && s->is_string())
    attrs.Set(name, Bytes(s->get<std::string>()));
  if (const auto t = value.find("type"); t != value.end())
    if (const auto type = TypeNamed(*t)) attrs.Set(name, *type);
  const json list = value.value("list", json());
  if (!list.is_object() || !list.value("i", json()).is_array()) return;
  std::vector<int64_t> numbers;
  for (const json& item : list["i"])
    if (const auto number = WholeNumber(item)) numbers.push_back(*number);
  attrs.Set(name, numbers);
}

size_t ResultCount(const std::string& op, const Attrs& attrs) {
  if (op == "TopKV2") return 2;
  const int64_t count = attrs.i64("num_split", attrs.i64("num", 1));
  return count >= 1 && count <= (1 << 12) ? static_cast<size_t>(count) : 1;
}

void TensorFlowOp(LayerCall& c) {
  json node = c.config().value("node_def", json());
  if (node.is_string()) {
    const auto parsed = ParseJson(node.get<std::string>(), "node_def");
    if (!parsed) return c.emit().Fail(parsed.error());
    node = *parsed;
  }
  if (!node.is_object() || !node.value("op", json()).is_string())
    return c.emit().Reject("its node_def is invalid");
  const std::string op = node["op"];
  Attrs attrs;
  if (const json given = node.value("attr", json()); given.is_object())
    for (const auto& [name, value] : given.items()) Put(attrs, name, value);
  const json constants = c.config().value("constants", json::object());
  const size_t count = c.inputs().size() + (constants.is_object() ? constants.size() : 0);
  std::vector<ValueId> operands;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto at = constants.is_object() ? constants.find(std::to_string(i)) : constants.end();
    operands.push_back(at != constants.end() ? Numbers(c, *at, DType::kNone) : c.in(next++));
  }
  // Integer constants are converted to floats if the op's type is a float.
  const auto type = attrs.Find("T");
  const auto* wanted = type ? std::get_if<DType>(type) : nullptr;
  const bool binary = operands.size() == 2 && node.value("attr", json::object()).size() == 1;
  if (binary && wanted && *wanted == DType::kF32)
    for (ValueId& v : operands) v = c.emit().Cast(v, DType::kF32);
  for (const ValueId v : c.emit().Ops(op, operands, attrs, ResultCount(op, attrs))) c.AddOutput(v);
}

}  // namespace

std::span<const LayerRow> TensorFlowLayers() {
  static constexpr LayerRow kTable[] = {{"TensorFlowOpLayer", TensorFlowOp, nullptr, MaskRule::kStop}};
  return kTable;
}

}  // namespace fusebox::keras
