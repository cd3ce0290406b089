// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

void ExpandDims(LayerCall& c, std::string_view) {
  ValueId x = TensorArgument(c, 0, {"x", "input"});
  const auto axes = IntsArgument(c, 1, {"axis"});
  if (!axes) return c.e().Refuse("an axis that is not a number");
  for (const int64_t axis : *axes) x = c.e().Op("ExpandDims", {x, c.e().I32(axis)});
  c.Give(x);
}

void Squeeze(LayerCall& c, std::string_view) {
  const auto axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  c.Give(c.e().Op("Squeeze", {TensorArgument(c, 0, {"x", "input"})}, MakeAttrs("squeeze_dims", axes)));
}

void Reshape(LayerCall& c, std::string_view) {
  const auto shape = IntsArgument(c, 1, {"shape", "newshape"});
  if (!shape) return c.e().Refuse("a shape that is computed");
  c.Give(c.e().Op("Reshape", {TensorArgument(c, 0, {"tensor", "x"}), c.e().I32s(*shape)}));
}

void TransposeAxes(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"a", "x"});
  std::vector<int64_t> reversed;
  for (int i = c.e().rank(x); i > 0; --i) reversed.push_back(i - 1);
  c.Give(c.e().Transpose(x, IntsArgument(c, 1, {"perm", "axes"}).value_or(reversed)));
}

void Concat(LayerCall& c, std::string_view) {
  std::vector<ValueId> parts;
  for (const Flow& input : c.inputs()) parts.push_back(input.value);
  const auto axis = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{0});
  if (parts.empty() || axis.size() != 1) return c.e().Refuse("what it joins, and where, is not known");
  const int64_t at = axis[0] < 0 ? axis[0] + c.e().rank(parts[0]) : axis[0];
  c.Give(c.e().Concat(std::move(parts), static_cast<int>(at)));
}

void CastTo(LayerCall& c, std::string_view) {
  static const auto* const types = new std::map<std::string, DType>{
      {"float32", DType::kF32}, {"int32", DType::kI32}, {"int64", DType::kI64}, {"bool", DType::kBool}};
  const json name = PlainArgument(c, 1, {"dtype"});
  const auto type = types->find(name.is_string() ? name.get<std::string>() : "");
  if (type == types->end()) return c.e().Refuse("a cast to " + name.dump().substr(0, 80));
  c.Give(c.e().Cast(TensorArgument(c, 0, {"x"}), type->second));
}

namespace {

struct SliceSpec {
  std::vector<int64_t> begin, end, step;
  int64_t begin_mask = 0, end_mask = 0, shrink = 0, ellipsis = 0, new_axis = 0;

  void Add(int64_t from, int64_t to, int64_t by) {
    begin.push_back(from);
    end.push_back(to);
    step.push_back(by);
  }
};

// One of the comma-separated parts: a number, null (a new dimension), `...`, or start, stop and step. False: none of these.
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
  if (key.is_null()) return c.e().Refuse("a slice of nothing");
  SliceSpec spec;
  for (const json& part : key.is_array() ? key : json::array({key}))
    if (spec.begin.size() >= 8 || !AddPart(part, spec))
      return c.e().Refuse("a slice " + part.dump().substr(0, 80));
  c.Give(c.e().Op("StridedSlice", {x, c.e().I32s(spec.begin), c.e().I32s(spec.end), c.e().I32s(spec.step)},
                  MakeAttrs("begin_mask", spec.begin_mask, "end_mask", spec.end_mask, "shrink_axis_mask",
                            spec.shrink, "ellipsis_mask", spec.ellipsis, "new_axis_mask", spec.new_axis)));
}

}  // namespace fusebox::keras
