// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

void ExpandDims(LayerCall& c, std::string_view) {
  ValueId x = TensorArgument(c, 0, {"x", "input"});
  const auto axes = IntsArgument(c, 1, {"axis"});
  if (!axes) return c.emit().Refuse("an axis that is not a number");
  for (const int64_t axis : *axes) x = c.emit().Op("ExpandDims", {x, c.emit().I32(axis)});
  c.AddOutput(x);
}

void Squeeze(LayerCall& c, std::string_view) {
  const auto axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  c.AddOutput(
      c.emit().Op("Squeeze", {TensorArgument(c, 0, {"x", "input"})}, MakeAttrs("squeeze_dims", axes)));
}

namespace {

// Keeps the known dimensions of a computed shape.
void SayShape(LayerCall& c, ValueId v, DType dtype, const std::vector<int64_t>& known) {
  if (c.emit().ok() && !c.emit().type(v).shape.ranked())
    c.emit().function().value(v).type = {dtype, Shape(known)};
}

}  // namespace

void Reshape(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"tensor", "x"});
  std::vector<int64_t> known;
  const ValueId shape = SizesArgument(c, 1, {"shape", "newshape"}, known);
  if (shape == kNoValue) return c.emit().Refuse("no shape");
  const ValueId y = c.emit().Op("Reshape", {x, shape});
  SayShape(c, y, c.emit().ok() ? c.emit().dtype(x) : DType::kNone, known);
  c.AddOutput(y);
}

void BroadcastTo(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"input", "x"});
  std::vector<int64_t> known;
  const ValueId shape = SizesArgument(c, 1, {"shape"}, known);
  if (shape == kNoValue) return c.emit().Refuse("no shape");
  const ValueId y = c.emit().Op("BroadcastTo", {x, shape});
  SayShape(c, y, c.emit().ok() ? c.emit().dtype(x) : DType::kNone, known);
  c.AddOutput(y);
}

void Ravel(LayerCall& c, std::string_view) { c.AddOutput(c.emit().Reshape(c.in(), {Extent{}})); }

void ShapeOf(LayerCall& c, std::string_view) {
  const std::string type = TextArgument(c, 1, {"out_type"}, "int32");
  c.AddOutput(
      c.emit().Op("Shape", {c.in()}, MakeAttrs("out_type", type == "int64" ? DType::kI64 : DType::kI32)));
}

void TransposeAxes(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"a", "x"});
  std::vector<int64_t> reversed;
  for (int i = c.emit().rank(x); i > 0; --i) reversed.push_back(i - 1);
  c.AddOutput(c.emit().Transpose(x, IntsArgument(c, 1, {"perm", "axes"}).value_or(reversed)));
}

void SwapAxes(LayerCall& c, std::string_view) {
  const int rank = c.emit().rank(c.in());
  const auto axes = AxesOf(c, {IntArgument(c, 1, {"axis1"}, 0), IntArgument(c, 2, {"axis2"}, 0)}, rank);
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  if (!c.emit().ok()) return;
  std::swap(perm[static_cast<size_t>(axes[0])], perm[static_cast<size_t>(axes[1])]);
  c.AddOutput(c.emit().Transpose(c.in(), perm));
}

void MoveAxis(LayerCall& c, std::string_view) {
  const int rank = c.emit().rank(c.in());
  const std::vector<int64_t> none;
  const auto from = AxesOf(c, IntsArgument(c, 1, {"source"}).value_or(none), rank);
  const auto to = AxesOf(c, IntsArgument(c, 2, {"destination"}).value_or(none), rank);
  if (c.emit().ok() && from.size() != to.size())
    c.emit().Reject("its source and destination differ in number");
  if (!c.emit().ok()) return;
  std::map<int64_t, int64_t> moved;  // by new position
  for (size_t i = 0; i < from.size(); ++i) moved[to[i]] = from[i];
  std::vector<int64_t> perm;
  int64_t next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (const auto it = moved.find(i); it != moved.end()) {
      perm.push_back(it->second);
      continue;
    }
    while (std::ranges::find(from, next) != from.end()) ++next;
    perm.push_back(next++);
  }
  if (moved.size() != from.size()) return c.emit().Reject("its destination names an axis twice");
  c.AddOutput(c.emit().Transpose(c.in(), perm));
}

// Passes its input on, cast to `dtype` if given.
void Same(LayerCall& c, std::string_view op) {
  if (!PlainArgument(c, kKeywordOnly, {"dtype"}).is_null()) return CastTo(c, op);
  c.AddOutput(c.in());
}

// Floats of other sizes are computed in f32.
void CastTo(LayerCall& c, std::string_view op) {
  static const auto* const types = new std::map<std::string, DType>{
      {"float32", DType::kF32}, {"float16", DType::kF32}, {"float64", DType::kF32}, {"bfloat16", DType::kF32},
      {"int8", DType::kI8},     {"int16", DType::kI16},   {"int32", DType::kI32},   {"int64", DType::kI64},
      {"uint8", DType::kU8},    {"bool", DType::kBool}};
  static const auto* const ranges = new std::map<DType, std::pair<double, double>>{
      {DType::kI8, {-128, 127}},
      {DType::kU8, {0, 255}},
      {DType::kI16, {-32768, 32767}},
      {DType::kI32, {INT32_MIN, 2147483520}}};  // the largest f32 below 2^31
  const json name = PlainArgument(c, 1, {"dtype"});
  const auto type = types->find(name.is_string() ? name.get<std::string>() : "");
  if (type == types->end()) return c.emit().Refuse("a cast to " + name.dump().substr(0, 80));
  ValueId x = TensorArgument(c, 0, {"x", "value"});
  const bool saturate = op == "saturate" && type->second != DType::kF32 && type->second != DType::kBool;
  if (saturate && c.emit().ok() && c.emit().dtype(x) == DType::kF32) {
    const auto range = ranges->find(type->second);
    if (range == ranges->end()) return c.emit().Refuse("a cast to " + type->first);
    const ValueId raised = c.emit().Op("Maximum", {x, c.emit().F32(range->second.first)});
    x = c.emit().Op("Minimum", {raised, c.emit().F32(range->second.second)});
  } else if (saturate && c.emit().ok()) {
    return c.emit().Refuse("an input of " + std::string(Name(c.emit().dtype(x))));
  }
  c.AddOutput(c.emit().Cast(x, type->second));
}

namespace {

struct SliceSpec {
  std::vector<int64_t> begin, end, step;
  int64_t begin_mask = 0;
  int64_t end_mask = 0;
  int64_t shrink = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;

  void Add(int64_t from, int64_t to, int64_t by) {
    begin.push_back(from);
    end.push_back(to);
    step.push_back(by);
  }
};

// Adds one comma-separated part: an index, null (a new dimension), `...`, or start, stop and step. Returns
// false if the part is none of these.
bool AddPart(const json& part, SliceSpec& spec) {
  const int64_t bit = int64_t{1} << spec.begin.size();
  if (part.is_number_integer()) {
    const auto at = part.get<int64_t>();
    spec.Add(at, at + 1, 1);
    spec.shrink |= bit;
    if (at == -1) spec.end_mask |= bit;
    return true;
  }
  if (part.is_null()) {
    spec.Add(0, 0, 1);
    spec.new_axis |= bit;
    return true;
  }
  if (!part.is_object()) return false;
  const json class_name = part.value("class_name", json());
  if (class_name == "__ellipsis__") {
    spec.Add(0, 0, 1);
    spec.ellipsis |= bit;
    return true;
  }
  const json range = class_name == "__slice__" ? part.value("config", json::object()) : part;
  if (!range.is_object() || (!class_name.is_null() && class_name != "__slice__")) return false;
  std::optional<int64_t> numbers[3];
  static constexpr const char* kKeys[] = {"start", "stop", "step"};
  for (size_t i = 0; i < 3; ++i) {
    const json value = range.value(kKeys[i], json());
    if (!value.is_null() && !value.is_number_integer()) return false;
    if (!value.is_null()) numbers[i] = value.get<int64_t>();
  }
  if (!numbers[0]) spec.begin_mask |= bit;
  if (!numbers[1]) spec.end_mask |= bit;
  spec.Add(numbers[0].value_or(0), numbers[1].value_or(0), numbers[2].value_or(1));
  return true;
}

}  // namespace

void GetItem(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"x"});
  const json key = PlainArgument(c, 1, {"slice_spec", "key"});
  if (key.is_null()) return c.emit().Refuse("a slice of nothing");
  SliceSpec spec;
  for (const json& part : key.is_array() ? key : json::array({key}))
    if (spec.begin.size() >= 8 || !AddPart(part, spec))
      return c.emit().Refuse("a slice " + part.dump().substr(0, 80));
  c.AddOutput(c.emit().Op(
      "StridedSlice", {x, c.emit().I32s(spec.begin), c.emit().I32s(spec.end), c.emit().I32s(spec.step)},
      MakeAttrs("begin_mask", spec.begin_mask, "end_mask", spec.end_mask, "shrink_axis_mask", spec.shrink,
                "ellipsis_mask", spec.ellipsis, "new_axis_mask", spec.new_axis)));
}

}  // namespace fusebox::keras
