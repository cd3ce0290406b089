// SPDX-License-Identifier: Apache-2.0
// Functions of images [batch, height, width, channels], or of one image.
#include <algorithm>
#include <cmath>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// An image argument with its axes, counted from 0.
struct Image {
  ValueId value = kNoValue;
  int rank = 0;
  int height = 0;
  int width = 0;
  int channels = 0;
};

Image ImageOf(LayerCall& c) {
  Image i;
  i.value = TensorArgument(c, 0, {"images", "image"});
  i.rank = c.emit().rank(i.value);
  const std::string format = TextArgument(c, kKeywordOnly, {"data_format"}, "channels_last");
  if (c.emit().ok() && i.rank != 3 && i.rank != 4)
    c.emit().Reject("its input is " + ToString(c.emit().type(i.value)) + ", expected 3 or 4 dimensions");
  const bool first = format == "channels_first";
  i.height = i.rank - (first ? 2 : 3);
  i.width = i.height + 1;
  i.channels = first ? i.rank - 3 : i.rank - 1;
  return i;
}

void RequireFloats(LayerCall& c, const Image& i) {
  if (c.emit().ok() && c.emit().dtype(i.value) != DType::kF32)
    c.emit().Refuse("an image of " + std::string(Name(c.emit().dtype(i.value))));
}

// The three channels, each with an axis of size 1.
std::vector<ValueId> Channels(LayerCall& c, const Image& i) {
  if (c.emit().dim(i.value, i.channels) != 3 && c.emit().ok())
    c.emit().Refuse("an image " + ToString(c.emit().type(i.value)) + " of other than three channels");
  return c.emit().Ops("Split", {c.emit().I32(i.channels), i.value}, MakeAttrs("num_split", int64_t{3}), 3);
}

void ToGrayscale(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  if (c.emit().ok() && c.emit().dim(i.value, i.channels) == 1) return c.AddOutput(i.value);
  RequireFloats(c, i);
  const auto rgb = Channels(c, i);
  const auto part = [&](size_t n, double weight) {
    return c.emit().Op("Mul", {rgb[n], c.emit().F32(weight)});
  };
  c.AddOutput(
      c.emit().Op("AddV2", {c.emit().Op("AddV2", {part(0, 0.2989), part(1, 0.587)}), part(2, 0.114)}));
}

void FromGrayscale(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  if (c.emit().ok() && c.emit().dim(i.value, i.channels) != 1) return c.emit().Refuse("several channels");
  c.AddOutput(c.emit().Concat({i.value, i.value, i.value}, i.channels));
}

// The hue is a sixth per step from one of red, green and blue to the next.
void ToHsv(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  RequireFloats(c, i);
  const auto rgb = Channels(c, i);
  if (!c.emit().ok()) return;
  Emitter& e = c.emit();
  const ValueId zero = e.F32(0);
  const ValueId value = e.Op("Maximum", {e.Op("Maximum", {rgb[0], rgb[1]}), rgb[2]});
  const ValueId least = e.Op("Minimum", {e.Op("Minimum", {rgb[0], rgb[1]}), rgb[2]});
  const ValueId range = e.Op("Sub", {value, least});
  const ValueId colored = e.Op("Greater", {range, zero});
  const ValueId bright = e.Op("Greater", {value, zero});
  const ValueId saturation = e.Op("SelectV2", {bright, e.Op("RealDiv", {range, value}), zero});
  const ValueId sixth = e.Op("RealDiv", {e.F32(1.0 / 6), e.Op("SelectV2", {colored, range, e.F32(1)})});
  const auto from = [&](size_t a, size_t b, double start) {
    const ValueId apart = e.Op("Mul", {sixth, e.Op("Sub", {rgb[a], rgb[b]})});
    return start == 0 ? apart : e.Op("AddV2", {apart, e.F32(start)});
  };
  const auto top = [&](size_t n) { return e.Op("Equal", {rgb[n], value}); };
  ValueId hue = e.Op("SelectV2", {top(1), from(2, 0, 2.0 / 6), from(0, 1, 4.0 / 6)});
  hue = e.Op("SelectV2", {top(0), from(1, 2, 0), hue});
  hue = e.Op("SelectV2", {colored, hue, zero});
  hue = e.Op("SelectV2", {e.Op("Less", {hue, zero}), e.Op("AddV2", {hue, e.F32(1)}), hue});
  c.AddOutput(e.Concat({hue, saturation, value}, i.channels));
}

// Each color is a trapezoid of the hue.
void FromHsv(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  RequireFloats(c, i);
  const auto hsv = Channels(c, i);
  if (!c.emit().ok()) return;
  Emitter& e = c.emit();
  const ValueId angle = e.Op("Mul", {hsv[0], e.F32(6)});
  const ValueId white = e.Op("Sub", {e.F32(1), hsv[1]});
  const auto color = [&](double middle, double sign, double height) {
    const ValueId apart = e.Op("Abs", {e.Op("Sub", {angle, e.F32(middle)})});
    const ValueId raw = e.Op("AddV2", {e.Op("Mul", {apart, e.F32(sign)}), e.F32(height)});
    const ValueId pure = e.Op("Minimum", {e.Op("Relu", {raw}), e.F32(1)});
    return e.Op("Mul", {hsv[2], e.Op("AddV2", {white, e.Op("Mul", {hsv[1], pure})})});
  };
  c.AddOutput(e.Concat({color(3, 1, -1), color(2, -1, 2), color(4, -1, 2)}, i.channels));
}

// Margins before and after an axis, from two of: before, after, and the size of the result.
struct Margins {
  int64_t before = 0;
  int64_t after = 0;
};

// `sign`: 1 to grow, -1 to shrink.
Margins MarginsOf(LayerCall& c, int64_t size, int64_t sign, Names before, Names after, Names target) {
  const auto said = [&](Names names) -> std::optional<int64_t> {
    const auto numbers = IntsArgument(c, kKeywordOnly, names);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  };
  std::optional<int64_t> first = said(before);
  std::optional<int64_t> last = said(after);
  const std::optional<int64_t> to = said(target);
  if (to && c.emit().ok() && size < 0) c.emit().Refuse("an image of unknown size");
  if (to && !last) last = sign * (*to - size) - first.value_or(0);
  if (to && !first) first = sign * (*to - size) - *last;
  const Margins out{first.value_or(0), last.value_or(0)};
  const bool fine = out.before >= 0 && out.after >= 0 && out.before < INT32_MAX / 2 &&
                    out.after < INT32_MAX / 2 && (sign > 0 || size < 0 || out.before + out.after < size) &&
                    (!to || size + sign * (out.before + out.after) == *to);
  if (!fine && c.emit().ok()) c.emit().Reject("its margins do not fit the image");
  return fine ? out : Margins{};
}

struct BothMargins {
  Margins rows, columns;
};
BothMargins MarginsOf(LayerCall& c, const Image& i, int64_t sign) {
  return {
      MarginsOf(c, c.emit().dim(i.value, i.height), sign, {"top_padding", "top_cropping", "offset_height"},
                {"bottom_padding", "bottom_cropping"}, {"target_height"}),
      MarginsOf(c, c.emit().dim(i.value, i.width), sign, {"left_padding", "left_cropping", "offset_width"},
                {"right_padding", "right_cropping"}, {"target_width"})};
}

void PadImage(LayerCall& c, std::string_view op) {
  const Image i = ImageOf(c);
  const BothMargins m = MarginsOf(c, i, 1);
  std::vector<int32_t> table(static_cast<size_t>(i.rank) * 2, 0);
  for (const auto& [axis, by] : {std::pair(i.height, m.rows), {i.width, m.columns}}) {
    if (!c.emit().ok()) return;
    table[static_cast<size_t>(axis) * 2] = static_cast<int32_t>(by.before);
    table[static_cast<size_t>(axis) * 2 + 1] = static_cast<int32_t>(by.after);
  }
  c.AddOutput(
      c.emit().Op(op, {i.value, c.emit().Const({{DType::kI32, {i.rank, 2}}, Buffer::Of<int32_t>(table)})}));
}

void CropImage(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  const BothMargins m = MarginsOf(c, i, -1);
  const ValueId rows = c.emit().Slice(i.value, i.height, m.rows.before, -m.rows.after);
  c.AddOutput(c.emit().Slice(rows, i.width, m.columns.before, -m.columns.after));
}

void CentralCrop(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  const double part = NumberArgument(c, 1, {"central_fraction"}, 1);
  if (part <= 0 || part > 1) return c.emit().Reject("its central_fraction");
  ValueId x = i.value;
  for (const int axis : {i.height, i.width}) {
    const int64_t size = c.emit().dim(x, axis);
    if (c.emit().ok() && size < 0) c.emit().Refuse("an image of unknown size");
    const auto margin =
        static_cast<int64_t>((static_cast<double>(size) - static_cast<double>(size) * part) / 2);
    x = c.emit().Slice(x, axis, margin, -margin);
  }
  c.AddOutput(x);
}

void ExtractPatches(LayerCall& c, std::string_view op) {
  const Image i = ImageOf(c);
  RequireFloats(c, i);
  const auto four = [&](Names names, const std::vector<int64_t>& otherwise) {
    auto sizes = IntsArgument(c, kKeywordOnly, names).value_or(otherwise);
    if (sizes.size() == 1) sizes.push_back(sizes[0]);
    if (sizes.size() == 2) sizes = {1, sizes[0], sizes[1], 1};
    return sizes;
  };
  if (c.emit().ok() && (i.rank != 4 || i.channels != 3))
    c.emit().Refuse("an image " + ToString(c.emit().type(i.value)) + ", expected a batch with channels last");
  const auto size = four({"size", "sizes"}, {});
  if (size.size() != 4) return c.emit().Refuse("patches that are not two-dimensional");
  std::string padding = TextArgument(c, kKeywordOnly, {"padding"}, "valid");
  std::ranges::transform(padding, padding.begin(),
                         [](unsigned char l) { return static_cast<char>(std::toupper(l)); });
  c.AddOutput(c.emit().Op(op, {i.value},
                          MakeAttrs("ksizes", size, "strides", four({"strides"}, size), "rates",
                                    four({"dilation_rate", "rates"}, {1}), "padding", padding)));
}

// Each image to mean 0 and variance 1; flat images are not scaled beyond the square root of their size.
void Standardize(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  const ValueId x = c.emit().Cast(i.value, DType::kF32);
  const ValueId axes = c.emit().I32s({i.height, i.width, i.channels});
  double count = 1;
  for (const int axis : {i.height, i.width, i.channels}) {
    const int64_t size = c.emit().dim(x, axis);
    if (c.emit().ok() && size < 1) c.emit().Refuse("an image of unknown size");
    count *= static_cast<double>(size);
  }
  if (!c.emit().ok()) return;
  const Attrs keep = MakeAttrs("keep_dims", true);
  const ValueId mean = c.emit().Op("Mean", {x, axes}, keep);
  const ValueId variance = c.emit().Op("Mean", {c.emit().Op("SquaredDifference", {x, mean}), axes}, keep);
  const ValueId spread =
      c.emit().Op("Maximum", {c.emit().Op("Sqrt", {variance}), c.emit().F32(1 / std::sqrt(count))});
  c.AddOutput(c.emit().Op("RealDiv", {c.emit().Op("Sub", {x, mean}), spread}));
}

void Brighten(LayerCall& c, std::string_view op) {
  const Image i = ImageOf(c);
  RequireFloats(c, i);
  c.AddOutput(c.emit().Op(op, {i.value, c.emit().F32(NumberArgument(c, 1, {"delta"}, 0))}));
}

// About the mean of each channel.
void Contrast(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  RequireFloats(c, i);
  const ValueId factor = c.emit().F32(NumberArgument(c, 1, {"contrast_factor"}, 1));
  const ValueId mean =
      c.emit().Op("Mean", {i.value, c.emit().I32s({i.height, i.width})}, MakeAttrs("keep_dims", true));
  const ValueId apart = c.emit().Op("Mul", {c.emit().Op("Sub", {i.value, mean}), factor});
  c.AddOutput(c.emit().Op("AddV2", {apart, mean}));
}

// Integers become parts of their type's maximum.
void ToFloats(LayerCall& c, std::string_view) {
  const Image i = ImageOf(c);
  const json type = PlainArgument(c, 1, {"dtype"});
  Ignore(c, {"saturate"});
  if (type != "float32") return c.emit().Refuse("its dtype " + type.dump().substr(0, 80));
  if (!c.emit().ok()) return;
  const DType from = c.emit().dtype(i.value);
  if (from == DType::kF32) return c.AddOutput(i.value);
  if (from != DType::kU8) return c.emit().Refuse("an image of " + std::string(Name(from)));
  c.AddOutput(c.emit().Op("Mul", {c.emit().Cast(i.value, DType::kF32), c.emit().F32(1.0 / 255)}));
}

void CropBoxes(LayerCall& c, std::string_view op) {
  const Image i = ImageOf(c);
  const std::string method = TextArgument(c, kKeywordOnly, {"method"}, "bilinear");
  const auto outside = static_cast<float>(NumberArgument(c, kKeywordOnly, {"extrapolation_value"}, 0));
  std::vector<int64_t> known;
  const ValueId boxes = FloatArgument(c, 1, {"boxes"});
  const ValueId owners = Operand(c, FindArgument(c, 2, {"box_indices", "box_ind"}), DType::kI32);
  const ValueId size = SizesArgument(c, 3, {"crop_size"}, known);
  if (size == kNoValue) return c.emit().Refuse("no crop_size");
  c.AddOutput(c.emit().Op(op, {i.value, boxes, owners, size},
                          MakeAttrs("method", method, "extrapolation_value", outside)));
}

}  // namespace

std::span<const NamedOperation> ImageOperations() {
  static constexpr NamedOperation kTable[] = {
      {"rgbtograyscale", {"", ToGrayscale}},
      {"grayscaletorgb", {"", FromGrayscale}},
      {"rgbtohsv", {"", ToHsv}},
      {"hsvtorgb", {"", FromHsv}},
      {"padimages", {"Pad", PadImage}},
      {"padtoboundingbox", {"Pad", PadImage}},
      {"cropimages", {"", CropImage}},
      {"croptoboundingbox", {"", CropImage}},
      {"centralcrop", {"", CentralCrop}},
      {"extractpatches", {"ExtractImagePatches", ExtractPatches}},
      {"perimagestandardization", {"", Standardize}},
      {"adjustbrightness", {"AddV2", Brighten}},
      {"adjustcontrast", {"", Contrast}},
      {"convertimagedtype", {"", ToFloats}},
      {"cropandresize", {"CropAndResize", CropBoxes}},
  };
  return kTable;
}

}  // namespace fusebox::keras
