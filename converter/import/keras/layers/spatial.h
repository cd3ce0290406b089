// SPDX-License-Identifier: Apache-2.0
// Helpers of spatial layers: channels last and back, and 1D forms of 2D ops.
#pragma once

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

// Returns the number of spatial dimensions in a class name ("Conv2DTranspose" has 2), or 0 if it has none.
int SpatialRank(std::string_view class_name);

// Transposes to [batch, space..., channels] if data_format requires it; `Back` undoes it.
ValueId ChannelsLast(LayerCall&, ValueId v);
ValueId ChannelsBack(LayerCall&, ValueId v);

// The input of a layer with `space` spatial dimensions, channels last. Fails if the rank differs.
ValueId SpatialInput(LayerCall&, int space);

// 1D as 2D with height 1, and back.
ValueId Widen(LayerCall&, ValueId v);   // [B, W, C] -> [B, 1, W, C]
ValueId Narrow(LayerCall&, ValueId v);  // [B, 1, W, C] -> [B, W, C]

// Sizes in TensorFlow's form: one per dimension, including batch and channels; height 1 for 1D.
std::vector<int64_t> WithBatchAndChannel(std::vector<int64_t> space);

// Repeats every element `times` times along one axis.
ValueId Repeat(LayerCall&, ValueId x, int axis, int64_t times);
// Resizes [B, H, W, C] to two i32 scalars: "nearest", "bilinear" or "bicubic", with half-pixel centers.
ValueId Interpolated(LayerCall&, ValueId x, const std::vector<ValueId>& sizes, const std::string& how);

// "SAME" or "VALID" from the configuration. Fails on other values except `also`, which is returned unchanged.
std::string Padding(LayerCall&, std::string_view also = {});

}  // namespace fusebox::keras
