// SPDX-License-Identifier: Apache-2.0
// Pooling over windows and global pooling.
#include "converter/import/keras/layers/spatial.h"

namespace fusebox::keras {
namespace {

bool IsMax(LayerCall& c) { return c.layer().class_name.find("Max") != std::string::npos; }

void Pool(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  const auto n = static_cast<size_t>(space);
  ValueId x = SpatialInput(c, space);
  const auto size = c.Has("pool_size") ? c.Sizes("pool_size", n) : c.Sizes("pool_length", n);
  const auto strides = c.Has("strides") ? c.Sizes("strides", n) : size;
  const std::string padding = Padding(c);
  if (!c.emit().ok()) return;
  if (space == 1) x = Widen(c, x);
  const std::string op = std::string(IsMax(c) ? "MaxPool" : "AvgPool") + (space == 3 ? "3D" : "");
  ValueId y = c.emit().Op(op, {x},
                          MakeAttrs("ksize", WithBatchAndChannel(size), "strides",
                                    WithBatchAndChannel(strides), "padding", padding));
  if (space == 1) y = Narrow(c, y);
  c.AddOutput(ChannelsBack(c, y));
}

void GlobalPool(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  const ValueId x = c.in();
  if (c.emit().rank(x) != space + 2 && c.emit().ok())
    return c.emit().Reject("its input is " + ToString(c.emit().type(x)) + ", expected " +
                           std::to_string(space + 2) + " dimensions");
  std::vector<int64_t> axes;
  for (int i = 0; i < space; ++i) axes.push_back(i + (c.ChannelsFirst() ? 2 : 1));
  const Attrs attrs = MakeAttrs("keep_dims", c.Bool("keepdims", false));
  // For a masked sequence, the mean over unmasked steps.
  if (c.mask() != kNoValue && space == 1 && !IsMax(c) && !c.ChannelsFirst()) {
    const ValueId kept = c.emit().Op("ExpandDims", {c.emit().Cast(c.mask(), DType::kF32), c.emit().I32(2)});
    const ValueId sum = c.emit().Op("Sum", {c.emit().Op("Mul", {x, kept}), c.emit().I32s(axes)}, attrs);
    return c.AddOutput(c.emit().Op("RealDiv", {sum, c.emit().Op("Sum", {kept, c.emit().I32s(axes)}, attrs)}));
  }
  c.AddOutput(c.emit().Op(IsMax(c) ? "Max" : "Mean", {x, c.emit().I32s(axes)}, attrs));
}

}  // namespace

std::span<const LayerRow> PoolingLayers() {
  static constexpr LayerRow kTable[] = {
      {"MaxPooling1D", Pool, nullptr, MaskRule::kStop},
      {"MaxPooling2D", Pool, nullptr, MaskRule::kStop},
      {"MaxPooling3D", Pool, nullptr, MaskRule::kStop},
      {"MaxPool1D", Pool, nullptr, MaskRule::kStop},
      {"MaxPool2D", Pool, nullptr, MaskRule::kStop},
      {"AveragePooling1D", Pool, nullptr, MaskRule::kStop},
      {"AveragePooling2D", Pool, nullptr, MaskRule::kStop},
      {"AveragePooling3D", Pool, nullptr, MaskRule::kStop},
      {"GlobalMaxPooling1D", GlobalPool, nullptr, MaskRule::kStop},
      {"GlobalMaxPooling2D", GlobalPool, nullptr, MaskRule::kStop},
      {"GlobalMaxPooling3D", GlobalPool, nullptr, MaskRule::kStop},
      {"GlobalAveragePooling1D", GlobalPool, nullptr, MaskRule::kStop},
      {"GlobalAveragePooling2D", GlobalPool, nullptr, MaskRule::kStop},
      {"GlobalAveragePooling3D", GlobalPool, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
