// SPDX-License-Identifier: Apache-2.0
// Composites that become the equivalent custom op.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::vision {

using namespace sdk;

// `addons:DenseImageWarp`: images [B,H,W,C] and flow [B,H,W,2], f32.
struct ImageWarpRule {
  static constexpr std::string_view id = "fusebox.dense_image_warp";
  static constexpr std::string_view implements = "addons:DenseImageWarp";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// `addons:MaxUnpooling2D`: values [B,h,w,C] f32 and indices i32 of the same shape; attributes pool_size and
// strides (height, width), padding (SAME, VALID).
struct UnpoolingRule {
  static constexpr std::string_view id = "fusebox.max_unpooling";
  static constexpr std::string_view implements = "addons:MaxUnpooling2D";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// `TFLite_Detection_PostProcess`: operands, results and attributes of the op (detection.h);
// detections_per_class is optional.
struct DetectionRule {
  static constexpr std::string_view id = "fusebox.detection";
  static constexpr std::string_view implements = "TFLite_Detection_PostProcess";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::vision
