// SPDX-License-Identifier: Apache-2.0
// Functions that join, cut and repeat tensors.
#include <algorithm>

#include "converter/import/keras/layers/operation.h"
#include "converter/import/keras/layers/spatial.h"

namespace fusebox::keras {

using nlohmann::json;

namespace {

std::vector<ValueId> Parts(LayerCall& c) {
  std::vector<ValueId> parts;
  for (const Flow& input : c.inputs()) parts.push_back(input.value);
  if (parts.empty()) c.emit().Refuse("an unknown list of tensors to join");
  return parts;
}

// One axis, counted from 0.
int64_t AxisOf(LayerCall& c, size_t position, int64_t otherwise, int rank) {
  return AxesOf(c, {IntArgument(c, position, {"axis"}, otherwise)}, rank)[0];
}

}  // namespace

void Concat(LayerCall& c, std::string_view) {
  std::vector<ValueId> parts = Parts(c);
  if (!c.emit().ok()) return;
  const int64_t axis = AxisOf(c, 1, 0, c.emit().rank(parts[0]));
  c.AddOutput(c.emit().Concat(std::move(parts), static_cast<int>(axis)));
}

// vstack treats vectors as rows, columnstack as columns; dstack joins along a third dimension.
void Pile(LayerCall& c, std::string_view name) {
  std::vector<ValueId> parts = Parts(c);
  if (!c.emit().ok()) return;
  const int rank = c.emit().rank(parts[0]);
  const auto expand = [&](int axis) {
    for (ValueId& part : parts) part = c.emit().Op("ExpandDims", {part, c.emit().I32(axis)});
  };
  if (rank == 1 && name == "vstack") expand(0);
  if (rank == 1 && name == "columnstack") expand(1);
  if (rank == 1 && name == "dstack") expand(0);
  if (rank <= 2 && name == "dstack") expand(2);
  const int axis = name == "dstack" ? 2 : name == "vstack" || (name == "hstack" && rank == 1) ? 0 : 1;
  c.AddOutput(c.emit().Concat(std::move(parts), axis));
}

void Append(LayerCall& c, std::string_view) {
  ValueId x = TensorArgument(c, 0, {"x1"});
  ValueId y = TensorArgument(c, 1, {"x2"});
  const auto axis = IntsArgument(c, kKeywordOnly, {"axis"});
  if (!axis) {
    x = c.emit().Reshape(x, {Extent{}});
    y = c.emit().Reshape(y, {Extent{}});
  }
  const int64_t at = AxesOf(c, axis.value_or(std::vector<int64_t>{0}), c.emit().rank(x))[0];
  c.AddOutput(c.emit().Concat({x, y}, static_cast<int>(at)));
}

void Stack(LayerCall& c, std::string_view) {
  const std::vector<ValueId> parts = Parts(c);
  if (!c.emit().ok()) return;
  const int64_t axis = AxisOf(c, 1, 0, c.emit().rank(parts[0]) + 1);
  c.AddOutput(c.emit().Op("Pack", parts, MakeAttrs("axis", axis)));
}

void Unstack(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  c.Keyword("num");  // follows from the size
  const int64_t axis = AxisOf(c, 2, 0, c.emit().rank(x));
  const int64_t count = c.emit().dim(x, static_cast<int>(axis));
  if (c.emit().ok() && (count < 1 || count > (1 << 12)))
    c.emit().Refuse("an input " + ToString(c.emit().type(x)) +
                    ", which must have a moderate number of parts");
  if (!c.emit().ok()) return;
  for (const ValueId v : c.emit().Ops("Unpack", {x}, MakeAttrs("axis", axis), static_cast<size_t>(count)))
    c.AddOutput(v);
}

namespace {

// A number of equal parts; or a list: sizes in TensorFlow (one may be -1), start indices in Keras 3.
void SplitAlong(LayerCall& c, int64_t axis) {
  const ValueId x = c.in();
  const json said = PlainArgument(c, 1, {"num_or_size_splits", "indices_or_sections"});
  const int64_t size = c.emit().dim(x, static_cast<int>(axis));
  auto sizes = IntsArgument(c, 1, {"num_or_size_splits", "indices_or_sections"});
  if (!c.emit().ok()) return;
  if (!sizes || sizes->size() > (1 << 12)) return c.emit().Refuse("an unknown number of parts");
  if (said.is_number_integer()) {
    const int64_t n = sizes->front();
    if (n < 1 || n > (1 << 12) || (size >= 0 && size % n != 0))
      return c.emit().Reject("its input " + ToString(c.emit().type(x)) + " has no " + std::to_string(n) +
                             " equal parts");
    for (const ValueId v :
         c.emit().Ops("Split", {c.emit().I32(axis), x}, MakeAttrs("num_split", n), static_cast<size_t>(n)))
      c.AddOutput(v);
    return;
  }
  if (c.keras() >= 3) {
    if (size < 0)
      return c.emit().Refuse("an input " + ToString(c.emit().type(x)) + ", whose size must be known");
    int64_t begin = 0;
    sizes->push_back(size);
    for (int64_t& at : *sizes) {
      const int64_t end = std::clamp<int64_t>(at < 0 ? at + size : at, begin, size);
      at = end - begin;
      begin = end;
    }
  }
  const auto parts =
      c.emit().Ops("SplitV", {x, c.emit().I32s(*sizes), c.emit().I32(axis)}, {}, sizes->size());
  for (const ValueId v : parts) c.AddOutput(v);
}

}  // namespace

void Split(LayerCall& c, std::string_view) { SplitAlong(c, AxisOf(c, 2, 0, c.emit().rank(c.in()))); }

void SplitAt(LayerCall& c, std::string_view name) {
  const int rank = c.emit().rank(c.in());
  const int axis = name == "dsplit" ? 2 : name == "vsplit" || rank == 1 ? 0 : 1;
  if (c.emit().ok() && axis >= rank) c.emit().Reject("its input has too few dimensions");
  if (c.emit().ok()) SplitAlong(c, axis);
}

void Tile(LayerCall& c, std::string_view) {
  std::vector<int64_t> known;
  ValueId x = c.in();
  const ValueId times = SizesArgument(c, 1, {"multiples", "repeats"}, known);
  if (times == kNoValue) return c.emit().Refuse("no repeat counts");
  if (c.emit().ok() && static_cast<int>(known.size()) != c.emit().rank(x))
    return c.emit().Refuse("repeat counts other than one per dimension");
  c.AddOutput(c.emit().Op("Tile", {x, times}));
}

void RepeatEach(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const int64_t times = IntArgument(c, 1, {"repeats"}, 0);
  const auto axis = IntsArgument(c, 2, {"axis"});
  if (c.emit().ok() && (!axis || axis->size() != 1 || times < 1 || times > INT32_MAX))
    c.emit().Refuse("repeats other than one number along one axis");
  if (!c.emit().ok()) return;
  const int64_t at = AxesOf(c, *axis, c.emit().rank(x))[0];
  if (c.emit().ok()) c.AddOutput(Repeat(c, x, static_cast<int>(at), times));
}

namespace {

// [[before, after], ...]; Keras 3 also accepts one pair or one number for all dimensions.
std::vector<int32_t> PadAmounts(LayerCall& c, int rank) {
  json said = PlainArgument(c, 1, {"paddings", "pad_width"});
  if (said.is_number_integer()) said = json::array({said, said});
  if (said.is_array() && said.size() == 1 && said[0].is_array()) said = said[0];
  if (said.is_array() && said.size() == 2 && said[0].is_number_integer())
    said = json(static_cast<size_t>(rank), said);
  std::vector<int32_t> out;
  const auto amount = [](const json& n) {
    return n.is_number_integer() && n.get<int64_t>() >= 0 && n.get<int64_t>() <= INT32_MAX;
  };
  if (said.is_array())
    for (const json& pair : said)
      if (pair.is_array() && pair.size() == 2 && amount(pair[0]) && amount(pair[1]))
        out.insert(out.end(), {pair[0].get<int32_t>(), pair[1].get<int32_t>()});
  if (out.size() != static_cast<size_t>(rank) * 2)
    c.emit().Refuse("its paddings " + said.dump().substr(0, 80));
  return out;
}

}  // namespace

void PadWith(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  std::vector<int32_t> amounts = PadAmounts(c, rank);
  std::string mode = TextArgument(c, 2, {"mode"}, "CONSTANT");
  std::ranges::transform(mode, mode.begin(),
                         [](unsigned char l) { return static_cast<char>(std::toupper(l)); });
  const double value = NumberArgument(c, 3, {"constant_values"}, 0);
  if (!c.emit().ok()) return;
  const ValueId table = c.emit().Const({{DType::kI32, {rank, 2}}, Buffer::Of<int32_t>(amounts)});
  if (mode == "REFLECT" || mode == "SYMMETRIC")
    return c.AddOutput(c.emit().Op("MirrorPad", {x, table}, MakeAttrs("mode", mode)));
  if (mode != "CONSTANT") return c.emit().Refuse("its mode " + mode);
  c.AddOutput(value == 0 ? c.emit().Op("Pad", {x, table})
                         : c.emit().Op("PadV2", {x, table, c.emit().Scalar(c.emit().dtype(x), value)}));
}

void Reverse(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  std::vector<int64_t> axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  c.AddOutput(c.emit().Op("ReverseV2", {x, c.emit().I32s(AxesOf(c, axes, rank))}));
}

void Flip(LayerCall& c, std::string_view axis) {
  const ValueId x = c.in();
  const int64_t at = axis == "width" ? -2 : axis == "height" ? -3 : axis == "columns" ? 1 : 0;
  c.AddOutput(c.emit().Op("ReverseV2", {x, c.emit().I32s(AxesOf(c, {at}, c.emit().rank(x)))}));
}

// Quarter turns from the first axis towards the second; of images, from height to width.
void Rotate(LayerCall& c, std::string_view) {
  ValueId x = c.in();
  const int rank = c.emit().rank(x);
  const int64_t turns = ((IntArgument(c, 1, {"k"}, 1) % 4) + 4) % 4;
  const std::vector<int64_t> usual =
      c.keras() >= 3 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{-3, -2};
  const auto axes = AxesOf(c, IntsArgument(c, kKeywordOnly, {"axes"}).value_or(usual), rank);
  if (axes.size() != 2 || axes[0] == axes[1]) return c.emit().Refuse("axes that are not two");
  std::vector<int64_t> perm = AllAxes(rank);
  if (!c.emit().ok()) return;
  std::swap(perm[static_cast<size_t>(axes[0])], perm[static_cast<size_t>(axes[1])]);
  if (turns == 1 || turns == 2) x = c.emit().Op("ReverseV2", {x, c.emit().I32s({axes[1]})});
  if (turns == 2) x = c.emit().Op("ReverseV2", {x, c.emit().I32s({axes[0]})});
  if (turns == 1 || turns == 3) x = c.emit().Transpose(x, perm);
  if (turns == 3) x = c.emit().Op("ReverseV2", {x, c.emit().I32s({axes[1]})});
  c.AddOutput(x);
}

void Roll(LayerCall& c, std::string_view) {
  const auto shift = IntsArgument(c, 1, {"shift"});
  const auto axis = IntsArgument(c, 2, {"axis"});
  if (!shift || !axis) return c.emit().Refuse("no shift along an axis");
  c.AddOutput(c.emit().Op("Roll", {c.in(), c.emit().I32s(*shift), c.emit().I32s(*axis)}));
}

void Gather(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"params", "x"});
  const Given* indices = FindArgument(c, 1, {"indices"});
  const int64_t batch = IntArgument(c, 4, {"batch_dims"}, 0);
  const auto axes = IntsArgument(c, c.keras() >= 3 ? 2 : 3, {"axis"});
  if (!axes && c.keras() >= 3) return c.emit().Refuse("no axis");
  if (axes && axes->size() != 1) return c.emit().Refuse("several axes");
  const auto* flow = indices ? std::get_if<Flow>(&indices->value) : nullptr;
  const bool narrow = !flow || c.emit().dtype(flow->value) != DType::kI64;
  const DType type = narrow ? DType::kI32 : DType::kI64;
  ValueId at = Operand(c, indices, type);
  const int64_t axis = AxesOf(c, axes.value_or(std::vector<int64_t>{batch}), c.emit().rank(x))[0];
  if (!c.emit().ok()) return;
  // Keras 3 counts negative indices from the end.
  if (c.keras() >= 3) {
    const ValueId size = c.emit().Cast(c.emit().SizeValue(c.emit().size(x, static_cast<int>(axis))), type);
    const ValueId below = c.emit().Op("Less", {at, c.emit().Scalar(type, 0)});
    at = c.emit().Op("SelectV2", {below, c.emit().Op("AddV2", {at, size}), at});
  }
  c.AddOutput(c.emit().Op("GatherV2", {x, at, c.emit().I32(axis)}, MakeAttrs("batch_dims", batch)));
}

void GatherNd(LayerCall& c, std::string_view op) {
  const ValueId x = TensorArgument(c, 0, {"params"});
  const ValueId at = Operand(c, FindArgument(c, 1, {"indices"}), DType::kI32);
  if (IntArgument(c, 2, {"batch_dims"}, 0) != 0) return c.emit().Refuse("batch_dims");
  c.AddOutput(c.emit().Op(op, {x, at}));
}

// Only along the last axis, as attention and sorting use it; -1 is the last axis.
void TakeAlong(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"x"});
  const auto axes = IntsArgument(c, 2, {"axis"});
  const int rank = c.emit().rank(x);
  ValueId at = Operand(c, FindArgument(c, 1, {"indices"}), DType::kI32);
  if (!c.emit().ok()) return;
  if (!axes || axes->size() != 1 || AxesOf(c, *axes, rank)[0] != rank - 1)
    return c.emit().Refuse("an axis other than the last");
  for (int i = 0; i + 1 < rank; ++i)
    if (c.emit().rank(at) != rank || c.emit().dim(at, i) < 0 || c.emit().dim(at, i) != c.emit().dim(x, i))
      return c.emit().Refuse("indices " + ToString(c.emit().type(at)) + " into " +
                             ToString(c.emit().type(x)) +
                             ", whose dimensions before the last must be known and equal");
  const ValueId below = c.emit().Op("Less", {at, c.emit().I32(0)});
  at = c.emit().Op("SelectV2",
                   {below, c.emit().Op("AddV2", {at, c.emit().SizeValue(c.emit().size(x, -1))}), at});
  c.AddOutput(
      c.emit().Op("GatherV2", {x, at, c.emit().I32(rank - 1)}, MakeAttrs("batch_dims", int64_t{rank - 1})));
}

void CutOut(LayerCall& c, std::string_view op) {
  std::vector<int64_t> known;
  const ValueId x = TensorArgument(c, 0, {"input_", "inputs"});
  const ValueId begin = SizesArgument(c, 1, {"begin", "start_indices"}, known);
  const ValueId size = SizesArgument(c, 2, {"size", "shape"}, known);
  if (begin == kNoValue || size == kNoValue) return c.emit().Refuse("no start and size of the slice");
  c.AddOutput(c.emit().Op(op, {x, begin, size}));
}

void OneHot(LayerCall& c, std::string_view) {
  const int64_t depth = IntArgument(c, 1, {"depth", "num_classes"}, 0);
  const double on = NumberArgument(c, 2, {"on_value"}, 1);
  const double off = NumberArgument(c, 3, {"off_value"}, 0);
  const int64_t axis = IntArgument(c, 4, {"axis"}, -1);
  const json type = PlainArgument(c, kKeywordOnly, {"dtype"});
  const bool whole = type == "int32" || type == "int64" || type == "bool";
  if (!type.is_null() && !whole && type != "float32") return c.emit().Refuse("its dtype " + type.dump());
  if (FlagArgument(c, 5, {"sparse"})) return c.emit().Refuse("a sparse result");
  if (depth < 1) return c.emit().Refuse("an unknown number of classes");
  const ValueId x = c.emit().dtype(c.in()) == DType::kF32 ? c.emit().Cast(c.in(), DType::kI32) : c.in();
  const ValueId hot = c.emit().Op("OneHot", {x, c.emit().I32(depth), c.emit().F32(on), c.emit().F32(off)},
                                  MakeAttrs("axis", axis));
  c.AddOutput(!whole            ? hot
              : type == "int32" ? c.emit().Cast(hot, DType::kI32)
                                : c.emit().Cast(hot, type == "bool" ? DType::kBool : DType::kI64));
}

void Blocks(LayerCall& c, std::string_view op) {
  const int64_t size = IntArgument(c, 1, {"block_size"}, 0);
  const std::string format = TextArgument(c, 2, {"data_format"}, "NHWC");
  if (format != "NHWC") return c.emit().Refuse("its data_format " + format);
  c.AddOutput(c.emit().Op(op, {c.in()}, MakeAttrs("block_size", size)));
}

void Resize(LayerCall& c, std::string_view) {
  const auto size = IntsArgument(c, 1, {"size"});
  const std::string how = TextArgument(c, 2, {"method", "interpolation"}, "bilinear");
  const std::string format = TextArgument(c, 9, {"data_format"}, "channels_last");
  for (const char* flag :
       {"antialias", "preserve_aspect_ratio", "crop_to_aspect_ratio", "pad_to_aspect_ratio"})
    if (FlagArgument(c, 9, {flag})) return c.emit().Refuse(flag);
  if (format != "channels_last") return c.emit().Refuse("its data_format " + format);
  if (!size || size->size() != 2) return c.emit().Refuse("a size that is not two numbers");
  const ValueId x = how == "nearest" ? c.in() : c.emit().Cast(c.in(), DType::kF32);
  c.AddOutput(Interpolated(c, x, {c.emit().I32(size->at(0)), c.emit().I32(size->at(1))}, how));
}

}  // namespace fusebox::keras
