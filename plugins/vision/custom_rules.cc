// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/custom_rules.h"

#include "plugins/vision/unpooling.h"

namespace fusebox::vision {
namespace {

constexpr std::string_view kDetectionAttrs[] = {"max_detections",    "max_classes_per_detection",
                                                "num_classes",       "nms_score_threshold",
                                                "nms_iou_threshold", "y_scale",
                                                "x_scale",           "h_scale",
                                                "w_scale",           "use_regular_nms"};

}  // namespace

void ImageWarpRule::match(const Site& site) {
  site.arity(2, 1);
  for (uint32_t i = 0; i < 2; ++i) site.operand(i, FBX_F32, 4);
  const int64_t numbers = site.in(1).dim(3);
  site.require(numbers < 0 || numbers == 2, "SHAPE", "has not two numbers per pixel", "operand 1");
}

void ImageWarpRule::rewrite(const Site&, Build& build) {
  build.result(0, build.custom("DenseImageWarp", {build.in(0), build.in(1)})[0]);
}

void UnpoolingRule::match(const Site& site) {
  site.arity(2, 1);
  site.operand(0, FBX_F32, 4);
  site.operand(1, FBX_I32, 4);
  for (const std::string_view key : {"pool_size", "strides"}) {
    site.attr(key);
    const auto sizes = site.attrs().i64s(key);
    const auto fits = [](int64_t size) { return size >= 1 && size <= 65536; };
    site.require(sizes.size() == 2 && fits(sizes[0]) && fits(sizes[1]), "ATTR", "is not two sizes",
                 "attr " + std::string(key));
  }
  const std::string_view padding = site.attrs().s("padding", "");
  site.require(padding == "SAME" || padding == "VALID", "ATTR", "is neither SAME nor VALID", "attr padding");
}

void UnpoolingRule::rewrite(const Site& site, Build& build) {
  const auto pool = site.attrs().i64s("pool_size"), strides = site.attrs().i64s("strides");
  PoolOptions options{};
  options.padding = site.attrs().s("padding", "") == "SAME" ? 1 : 2;
  options.stride_height = static_cast<int32_t>(strides[0]);
  options.stride_width = static_cast<int32_t>(strides[1]);
  options.window_height = static_cast<int32_t>(pool[0]);
  options.window_width = static_cast<int32_t>(pool[1]);
  const auto node = build.custom("MaxUnpooling2D", {build.in(0), build.in(1)});
  build.raw_options({reinterpret_cast<const char*>(&options), sizeof(options)});
  build.result(0, node[0]);
}

void DetectionRule::match(const Site& site) {
  site.arity(3, 4);
  for (uint32_t i = 0; i < 3; ++i) site.operand(i, FBX_F32, i == 2 ? 2 : 3);
  for (const std::string_view key : kDetectionAttrs) site.attr(key);
}

void DetectionRule::rewrite(const Site& site, Build& build) {
  const auto found = build.custom("TFLite_Detection_PostProcess", {build.in(0), build.in(1), build.in(2)}, 4);
  for (const std::string_view key : kDetectionAttrs) build.copy_attr(site.attrs(), key);
  if (site.attrs().has("detections_per_class")) build.copy_attr(site.attrs(), "detections_per_class");
  for (uint32_t i = 0; i < 4; ++i) build.result(i, found[i]);
}

}  // namespace fusebox::vision
