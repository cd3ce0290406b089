// SPDX-License-Identifier: Apache-2.0
// Scattering, segments, and tensors that are made from sizes.
#include <algorithm>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

ValueId Indices(LayerCall& c, size_t position, Names names) {
  return Operand(c, FindArgument(c, position, names), DType::kI32);
}

void Scatter(LayerCall& c, std::string_view op) {
  std::vector<int64_t> known;
  const ValueId at = Indices(c, 0, {"indices"});
  const ValueId updates = TensorArgument(c, 1, {"values", "updates"});
  const ValueId shape = SizesArgument(c, 2, {"shape"}, known);
  if (shape == kNoValue) return c.emit().Refuse("no shape");
  c.AddOutput(c.emit().Op(op, {at, updates, shape}));
}

// TensorFlow has one function per reduction; Keras 3 has a setting.
void ScatterUpdate(LayerCall& c, std::string_view op) {
  const std::string how = TextArgument(c, kKeywordOnly, {"reduction"}, "");
  const std::string_view by = how == "add" ? "Add" : how == "max" ? "Max" : how == "min" ? "Min" : "Update";
  if (!how.empty() && by == "Update") return c.emit().Refuse("its reduction " + how);
  const ValueId x = TensorArgument(c, 0, {"inputs", "tensor"});
  const ValueId at = Indices(c, 1, {"indices"});
  if (!c.emit().ok()) return;
  const ValueId updates = Operand(c, FindArgument(c, 2, {"updates"}), c.emit().dtype(x));
  c.AddOutput(c.emit().Op("TensorScatter" + std::string(op.empty() ? by : op), {x, at, updates}));
}

// A block that fits into the input; starts beyond the last fitting one are moved there.
void SliceUpdate(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"inputs"});
  std::vector<int64_t> known;
  const ValueId begin = SizesArgument(c, 1, {"start_indices"}, known);
  if (begin == kNoValue) return c.emit().Refuse("no start of the slice");
  if (!c.emit().ok()) return;
  const Type type = c.emit().type(x);
  const ValueId updates = Operand(c, FindArgument(c, 2, {"updates"}), type.dtype);
  c.AddOutput(c.emit().Node(Op::kDynamicUpdateSlice, {}, {x, updates, begin}, {type}, {})[0]);
}

void Segments(LayerCall& c, std::string_view op) {
  const ValueId data = TensorArgument(c, 0, {"data"});
  const ValueId owners = Indices(c, 1, {"segment_ids"});
  const int64_t count = IntArgument(c, kKeywordOnly, {"num_segments"}, 0);
  const bool sorted = FlagArgument(c, kKeywordOnly, {"sorted"});
  const bool any = op.starts_with("Unsorted");
  if (count >= 1) {
    const std::string name = any ? std::string(op) : "Unsorted" + std::string(op);
    return c.AddOutput(c.emit().Op(name, {data, owners, c.emit().I32(count)}));
  }
  if (any || (c.keras() >= 3 && !sorted)) return c.emit().Refuse("an unknown number of segments");
  c.AddOutput(c.emit().Op(op, {data, owners}));
}

// start, limit and delta; a single number is the limit.
void RangeOf(LayerCall& c, std::string_view op) {
  const Given* start = FindArgument(c, 0, {"start"});
  const Given* limit = FindArgument(c, 1, {"limit", "stop"});
  const Given* step = FindArgument(c, 2, {"delta", "step"});
  const Given zero{json(0)};
  const Given one{json(1)};
  const auto* none = limit ? std::get_if<json>(&limit->value) : nullptr;
  const bool single = !limit || (none && none->is_null());
  if (single) limit = start;
  if (single) start = &zero;
  const auto* no_step = step ? std::get_if<json>(&step->value) : nullptr;
  if (!step || (no_step && no_step->is_null())) step = &one;
  DType type = CommonType(c, start, limit, "");
  if (type == DType::kNone) type = DType::kI32;
  const ValueId made =
      c.emit().Op(op, {Operand(c, start, type), Operand(c, limit, type), Operand(c, step, type)});
  const json wanted = PlainArgument(c, kKeywordOnly, {"dtype"});
  if (wanted == "float32") return c.AddOutput(c.emit().Cast(made, DType::kF32));
  const bool same = wanted.is_null() || (wanted == "int32" && type == DType::kI32);
  if (!same) return c.emit().Refuse("its dtype " + wanted.dump().substr(0, 80));
  c.AddOutput(made);
}

// zeros, ones, or a value, of a shape that may be computed
void Filled(LayerCall& c, std::string_view value) {
  std::vector<int64_t> known;
  const bool fill = value == "fill";
  // In Keras 3 the shape is a setting.
  const bool three = c.keras() >= 3;
  const ValueId shape = SizesArgument(c, three ? kKeywordOnly : 0, {"shape", "dims"}, known);
  if (shape == kNoValue) return c.emit().Refuse("no shape");
  const json type = PlainArgument(c, kKeywordOnly, {"dtype"});
  const bool whole = type == "int32";
  if (!type.is_null() && !whole && type != "float32") return c.emit().Refuse("its dtype " + type.dump());
  const Given one{json(value == "ones" ? 1 : 0)};
  const Given* number = fill ? FindArgument(c, three ? 0 : 1, {"value", "fill_value"}) : &one;
  DType to = whole ? DType::kI32 : DType::kF32;
  if (fill && type.is_null()) to = CommonType(c, number, nullptr, "");
  const ValueId made = c.emit().Op("Fill", {shape, Operand(c, number, to)});
  if (c.emit().ok() && !c.emit().type(made).shape.ranked())
    c.emit().function().value(made).type = {to == DType::kNone ? DType::kI32 : to, Shape(known)};
  c.AddOutput(made);
}

// Places below each length: [..., maxlen]
void SequenceMask(LayerCall& c, std::string_view) {
  const ValueId lengths = c.emit().Cast(TensorArgument(c, 0, {"lengths"}), DType::kI32);
  const json type = PlainArgument(c, 2, {"dtype"});
  const Given* most = FindArgument(c, 1, {"maxlen"});
  const auto* none = most ? std::get_if<json>(&most->value) : nullptr;
  if (!most || (none && none->is_null())) return c.emit().Refuse("no maxlen");
  const ValueId places =
      c.emit().Op("Range", {c.emit().I32(0), Operand(c, most, DType::kI32), c.emit().I32(1)});
  const ValueId below = c.emit().Op("Less", {places, c.emit().Op("ExpandDims", {lengths, c.emit().I32(-1)})});
  if (type == "float32" || type == "int32")
    return c.AddOutput(c.emit().Cast(below, type == "int32" ? DType::kI32 : DType::kF32));
  if (!type.is_null() && type != "bool") return c.emit().Refuse("its dtype " + type.dump().substr(0, 80));
  c.AddOutput(below);
}

}  // namespace

std::span<const NamedOperation> UpdateOperations() {
  static constexpr NamedOperation kTable[] = {
      {"scatter", {"ScatterNd", Scatter}},
      {"scatternd", {"ScatterNd", Scatter}},
      {"scatterupdate", {"", ScatterUpdate}},
      {"tensorscatterndupdate", {"Update", ScatterUpdate}},
      {"tensorscatterndadd", {"Add", ScatterUpdate}},
      {"tensorscatterndsub", {"Sub", ScatterUpdate}},
      {"tensorscatterndmax", {"Max", ScatterUpdate}},
      {"tensorscatterndmin", {"Min", ScatterUpdate}},
      {"sliceupdate", {"", SliceUpdate}},
      {"segmentsum", {"SegmentSum", Segments}},
      {"segmentmax", {"SegmentMax", Segments}},
      {"segmentmin", {"SegmentMin", Segments}},
      {"segmentprod", {"SegmentProd", Segments}},
      {"unsortedsegmentsum", {"UnsortedSegmentSum", Segments}},
      {"unsortedsegmentmax", {"UnsortedSegmentMax", Segments}},
      {"unsortedsegmentmin", {"UnsortedSegmentMin", Segments}},
      {"unsortedsegmentprod", {"UnsortedSegmentProd", Segments}},
      {"arange", {"Range", RangeOf}},
      {"range", {"Range", RangeOf}},
      {"full", {"fill", Filled}},
      {"fill", {"fill", Filled}},
      {"zeros", {"zeros", Filled}},
      {"ones", {"ones", Filled}},
      {"sequencemask", {"", SequenceMask}},
  };
  return kTable;
}

}  // namespace fusebox::keras
