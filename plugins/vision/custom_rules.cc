// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/custom_rules.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

constexpr std::string_view kDetectionAttrs[] = {"max_detections",    "max_classes_per_detection",
                                                "num_classes",       "nms_score_threshold",
                                                "nms_iou_threshold", "y_scale",
                                                "x_scale",           "h_scale",
                                                "w_scale",           "use_regular_nms"};

std::string Attr(std::string_view key) { return "attr " + std::string(key); }

std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

}  // namespace

void ImageWarpRule::match(const Site& site) {
  site.arity(2, 1);
  for (uint32_t i = 0; i < 2; ++i) site.operand(i, FBX_F32, 4);
  const int64_t numbers = site.in(1).dim(3);
  site.require(numbers < 0 || numbers == 2, "SHAPE", "does not have two numbers per pixel", "operand 1");
  for (int i = 0; i < 3; ++i) {
    const int64_t image = site.in(0).dim(i);
    const int64_t flow = site.in(1).dim(i);
    site.require(image < 0 || flow < 0 || image == flow, "SHAPE",
                 "dimension " + std::to_string(i) + " is " + std::to_string(flow) + ", that of the images " +
                     std::to_string(image),
                 "operand 1");
    site.require(i == 0 || image < 0 || image > 1, "SHAPE", "is less than two pixels high or wide",
                 "operand 0");
  }
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
  const auto pool = site.attrs().i64s("pool_size");
  const auto strides = site.attrs().i64s("strides");
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
  const auto at_least = [&](std::string_view key) {
    const int64_t count = site.attrs().i64(key, 1);
    site.require(count >= 1, "ATTR", "is " + std::to_string(count) + ", expected 1 or more", Attr(key));
  };
  for (const std::string_view key :
       {"max_detections", "max_classes_per_detection", "num_classes", "detections_per_class"})
    at_least(key);
  for (const std::string_view key : {"y_scale", "x_scale", "h_scale", "w_scale", "nms_iou_threshold"}) {
    const double value = site.attrs().f64(key);
    site.require(value > 0 && std::isfinite(value), "ATTR",
                 "is " + Text(value) + ", expected a number above 0", Attr(key));
  }
  site.require(site.attrs().f64("nms_iou_threshold") <= 1, "ATTR", "is above 1", Attr("nms_iou_threshold"));
  for (const uint32_t i : {0u, 1u})
    site.require(site.in(i).dim(0) < 0 || site.in(i).dim(0) == 1, "SHAPE",
                 "has " + std::to_string(site.in(i).dim(0)) + " images, the op supports one",
                 "operand " + std::to_string(i));
  const int64_t scores = site.in(1).dim(2);
  const int64_t classes = site.attrs().i64("num_classes");
  site.require(scores < 0 || scores == classes || scores == classes + 1, "SHAPE",
               "has " + std::to_string(scores) + " scores for " + std::to_string(classes) +
                   " classes, expected as many or one more",
               "operand 1");
}

void DetectionRule::rewrite(const Site& site, Build& build) {
  const auto found = build.custom("TFLite_Detection_PostProcess", {build.in(0), build.in(1), build.in(2)}, 4);
  for (const std::string_view key : kDetectionAttrs) build.copy_attr(site.attrs(), key);
  if (site.attrs().has("detections_per_class")) build.copy_attr(site.attrs(), "detections_per_class");
  for (uint32_t i = 0; i < 4; ++i) build.result(i, found[i]);
}

}  // namespace fusebox::vision
