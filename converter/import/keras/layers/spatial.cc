// SPDX-License-Identifier: Apache-2.0
// Layers that crop, pad and resize space.
#include "converter/import/keras/layers/spatial.h"

#include <algorithm>

namespace fusebox::keras {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

// "padding" or "cropping": one number, one per dimension, or (before, after) per dimension. For 1D, two
// numbers are a pair.
Pairs Amounts(LayerCall& c, const char* key, int space) {
  const auto n = static_cast<size_t>(space);
  const auto it = c.config().find(key);
  Pairs out;
  if (it != c.config().end() && it->is_array() && it->size() == n && (*it)[0].is_array()) {
    for (const auto& pair : *it)
      if (pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() && pair[1].is_number_integer())
        out.emplace_back(pair[0].get<int64_t>(), pair[1].get<int64_t>());
  } else if (space == 1 && it != c.config().end() && it->is_array()) {
    const auto both = c.Sizes(key, 2, 0);
    out.emplace_back(both[0], both[1]);
  } else {
    for (const int64_t amount : c.Sizes(key, n, 0)) out.emplace_back(amount, amount);
  }
  const auto fine = [](const auto& p) {
    return p.first >= 0 && p.second >= 0 && p.first < INT32_MAX / 2 && p.second < INT32_MAX / 2;
  };
  if (out.size() != n || !std::ranges::all_of(out, fine)) {
    c.emit().Reject(std::string("its ") + key + " should be " + std::to_string(n) + " pairs of sizes");
    out.assign(n, {0, 0});
  }
  return out;
}

// Index of the first spatial dimension in the layer's own data format.
size_t FirstAxis(LayerCall& c) { return c.ChannelsFirst() ? 2 : 1; }

ValueId Checked(LayerCall& c, int space) {
  const ValueId x = c.in();
  if (c.emit().rank(x) == space + 2 || !c.emit().ok()) return x;
  c.emit().Reject("its input is " + ToString(c.emit().type(x)) + ", expected " + std::to_string(space + 2) +
                  " dimensions");
  return x;
}

void ZeroPadding(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  const ValueId x = Checked(c, space);
  const Pairs amounts = Amounts(c, "padding", space);
  std::vector<int32_t> table(static_cast<size_t>(space + 2) * 2, 0);
  for (size_t i = 0; i < amounts.size(); ++i) {
    table[(i + FirstAxis(c)) * 2] = static_cast<int32_t>(amounts[i].first);
    table[(i + FirstAxis(c)) * 2 + 1] = static_cast<int32_t>(amounts[i].second);
  }
  c.AddOutput(
      c.emit().Op("Pad", {x, c.emit().Const({{DType::kI32, {space + 2, 2}}, Buffer::Of<int32_t>(table)})}));
}

void Cropping(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = Checked(c, space);
  const Pairs amounts = Amounts(c, "cropping", space);
  for (size_t i = 0; i < amounts.size(); ++i) {
    const auto axis = static_cast<int>(i + FirstAxis(c));
    const int64_t size = c.emit().dim(x, axis);
    if (size >= 0 && amounts[i].first + amounts[i].second >= size)
      return c.emit().Reject("it cuts all of dimension " + std::to_string(axis) + " of its input " +
                             ToString(c.emit().type(x)));
    if (amounts[i].first != 0 || amounts[i].second != 0)
      x = c.emit().Slice(x, axis, amounts[i].first, -amounts[i].second);
  }
  c.AddOutput(x);
}

void UpSampling(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = SpatialInput(c, space);
  const auto n = static_cast<size_t>(space);
  const auto times = c.Sizes("size", n);
  if (space != 2) {
    for (size_t i = 0; i < n; ++i) x = Repeat(c, x, static_cast<int>(i) + 1, times[i]);
    return c.AddOutput(ChannelsBack(c, x));
  }
  std::vector<ValueId> sizes;
  for (int i = 0; i < 2; ++i) {
    const Extent in = c.emit().size(x, i + 1);
    const int64_t by = times[static_cast<size_t>(i)];
    if (in.size >= 0 && in.size > INT32_MAX / by) return c.emit().Reject("its output is too large");
    sizes.push_back(in.size >= 0 ? c.emit().I32(in.size * by)
                                 : c.emit().Op("Mul", {c.emit().SizeValue(in), c.emit().I32(by)}));
  }
  c.AddOutput(ChannelsBack(c, Interpolated(c, x, sizes, c.Str("interpolation", "nearest"))));
}

void Resizing(LayerCall& c) {
  const ValueId x = c.emit().Cast(SpatialInput(c, 2), DType::kF32);
  for (const char* key : {"crop_to_aspect_ratio", "pad_to_aspect_ratio"})
    if (c.Bool(key, false)) return c.emit().Refuse(key);
  if (c.Bool("antialias", false)) return c.emit().Refuse("antialias");
  const std::vector<ValueId> sizes = {c.emit().I32(c.Int("height")), c.emit().I32(c.Int("width"))};
  c.AddOutput(ChannelsBack(c, Interpolated(c, x, sizes, c.Str("interpolation", "bilinear"))));
}

void CenterCrop(LayerCall& c) {
  ValueId x = SpatialInput(c, 2);
  const std::vector<int64_t> want = {c.Int("height"), c.Int("width")};
  for (int i = 0; i < 2; ++i) {
    const int64_t size = c.emit().dim(x, i + 1);
    const int64_t to = want[static_cast<size_t>(i)];
    if (!c.emit().ok()) return;
    if (to < 1 || size < to)
      return c.emit().Refuse("its input is " + ToString(c.emit().type(x)) +
                             ", which may be smaller than the cropped size");
    const int64_t begin = (size - to) / 2;
    x = c.emit().Slice(x, i + 1, begin, begin + to - size);
  }
  c.AddOutput(ChannelsBack(c, x));
}

}  // namespace

int SpatialRank(std::string_view class_name) {
  for (int n = 1; n <= 3; ++n)
    if (class_name.find(std::to_string(n) + "D") != std::string_view::npos) return n;
  return 0;
}

ValueId ChannelsLast(LayerCall& c, ValueId v) {
  if (!c.ChannelsFirst()) return v;
  std::vector<int64_t> perm = {0};
  for (int i = 2; i < c.emit().rank(v); ++i) perm.push_back(i);
  perm.push_back(1);
  return c.emit().Transpose(v, perm);
}

ValueId ChannelsBack(LayerCall& c, ValueId v) {
  if (!c.ChannelsFirst()) return v;
  const int rank = c.emit().rank(v);
  std::vector<int64_t> perm = {0, rank - 1};
  for (int i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return c.emit().Transpose(v, perm);
}

ValueId SpatialInput(LayerCall& c, int space) { return ChannelsLast(c, Checked(c, space)); }

ValueId Widen(LayerCall& c, ValueId v) { return c.emit().Op("ExpandDims", {v, c.emit().I32(1)}); }
ValueId Narrow(LayerCall& c, ValueId v) {
  return c.emit().Op("Squeeze", {v}, MakeAttrs("squeeze_dims", std::vector<int64_t>{1}));
}

std::vector<int64_t> WithBatchAndChannel(std::vector<int64_t> space) {
  if (space.size() == 1) space.insert(space.begin(), 1);
  space.insert(space.begin(), 1);
  space.push_back(1);
  return space;
}

ValueId Repeat(LayerCall& c, ValueId x, int axis, int64_t times) {
  if (times == 1) return x;
  const int rank = c.emit().rank(x);
  std::vector<int64_t> tiles(static_cast<size_t>(rank) + 1, 1);
  tiles[static_cast<size_t>(axis) + 1] = times;
  const ValueId tiled =
      c.emit().Op("Tile", {c.emit().Op("ExpandDims", {x, c.emit().I32(axis + 1)}), c.emit().I32s(tiles)});
  std::vector<Extent> shape;
  for (int i = 0; i < rank; ++i) {
    Extent size = c.emit().size(x, i);
    if (i == axis) size = size.size >= 0 ? Extent{size.size * times} : Extent{};
    shape.push_back(size);
  }
  return c.emit().Reshape(tiled, shape);
}

ValueId Interpolated(LayerCall& c, ValueId x, const std::vector<ValueId>& sizes, const std::string& how) {
  const ValueId size = c.emit().Op("Pack", sizes);
  const std::string_view op = how == "nearest"    ? "ResizeNearestNeighbor"
                              : how == "bilinear" ? "ResizeBilinear"
                              : how == "bicubic"  ? "ResizeBicubic"
                                                  : "";
  if (!op.empty()) return c.emit().Op(op, {x, size}, MakeAttrs("half_pixel_centers", true));
  c.emit().Refuse("interpolation " + how);
  return kNoValue;
}

std::string Padding(LayerCall& c, std::string_view also) {
  const std::string padding = c.Str("padding", "valid");
  if (padding == "same") return "SAME";
  if (padding == "valid") return "VALID";
  if (padding != also || also.empty()) c.emit().Refuse("padding " + padding);
  return padding;
}

std::span<const LayerRow> SpatialLayers() {
  static constexpr LayerRow kTable[] = {
      {"ZeroPadding1D", ZeroPadding, nullptr, MaskRule::kStop},
      {"ZeroPadding2D", ZeroPadding, nullptr, MaskRule::kStop},
      {"ZeroPadding3D", ZeroPadding, nullptr, MaskRule::kStop},
      {"Cropping1D", Cropping, nullptr, MaskRule::kStop},
      {"Cropping2D", Cropping, nullptr, MaskRule::kStop},
      {"Cropping3D", Cropping, nullptr, MaskRule::kStop},
      {"UpSampling1D", UpSampling, nullptr, MaskRule::kStop},
      {"UpSampling2D", UpSampling, nullptr, MaskRule::kStop},
      {"UpSampling3D", UpSampling, nullptr, MaskRule::kStop},
      {"Resizing", Resizing, nullptr, MaskRule::kStop},
      {"CenterCrop", CenterCrop, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
