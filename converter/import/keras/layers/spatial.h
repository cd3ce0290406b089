// SPDX-License-Identifier: Apache-2.0
// What layers over space share: channels moved last and back, and one- and two-dimensional forms of one op.
#pragma once

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

// Number of spatial dimensions that a class name ends in: "Conv2DTranspose" has 2. 0: none.
int SpatialRank(std::string_view class_name);

// [batch, space..., channels] whatever the layer's data_format; `Back` undoes it.
ValueId ChannelsLast(LayerCall&, ValueId v);
ValueId ChannelsBack(LayerCall&, ValueId v);

// The input of a layer over `space` dimensions, channels last. Fails where its rank is another.
ValueId SpatialInput(LayerCall&, int space);

// Two-dimensional forms of one-dimensional things: a height of one.
ValueId Widen(LayerCall&, ValueId v);   // [B, W, C] -> [B, 1, W, C]
ValueId Narrow(LayerCall&, ValueId v);  // and back

// Every element `times` times along one axis.
ValueId Repeat(LayerCall&, ValueId x, int axis, int64_t times);
// [B, H, W, C] at another size, two scalars i32: "nearest", "bilinear" or "bicubic" of pixels whose centers
// are at halves.
ValueId Interpolated(LayerCall&, ValueId x, const std::vector<ValueId>& sizes, const std::string& how);

// "SAME" or "VALID" of the configuration; fails on others, but for `also`, which is returned as it is.
std::string Padding(LayerCall&, std::string_view also = {});

}  // namespace fusebox::keras
