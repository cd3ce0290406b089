// SPDX-License-Identifier: Apache-2.0
// Models with one TFLite_Detection_PostProcess node and seeded boxes, scores and anchors.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::vision_test {

struct Detector {
  int64_t anchors = 40, classes = 5, background = 1;
  int64_t most = 10, per_box = 1, per_class = 100;
  bool regular = false;
  bool regular_is_number = false;  // true is -1, false is 0
  double least_score = 0.3, most_overlap = 0.5;
  bool bytes = false;  // u8 operands
};

inline Attrs OptionsOf(const Detector& d) {
  Attrs attrs;
  attrs.Set("max_detections", d.most);
  attrs.Set("max_classes_per_detection", d.per_box);
  attrs.Set("detections_per_class", d.per_class);
  if (d.regular_is_number) attrs.Set("use_regular_nms", d.regular ? -1 : 0);
  else attrs.Set("use_regular_nms", d.regular);
  attrs.Set("nms_score_threshold", d.least_score);
  attrs.Set("nms_iou_threshold", d.most_overlap);
  attrs.Set("num_classes", d.classes);
  attrs.Set("y_scale", 10.0);
  attrs.Set("x_scale", 10.0);
  attrs.Set("h_scale", 5.0);
  attrs.Set("w_scale", 5.0);
  return attrs;
}

// Boxes and scores are inputs, anchors a constant.
inline std::unique_ptr<Module> ModuleOf(const Detector& d, const std::vector<float>& anchors) {
  auto module = std::make_unique<Module>();
  module->source = "detector.tflite";
  Function& f = module->Add("main");
  const DType dtype = d.bytes ? DType::kU8 : DType::kF32;
  const auto quantized = [&](ValueId id, float scale, int64_t zero) {
    if (!d.bytes) return id;
    auto quant = std::make_shared<Quant>();
    quant->scales = {scale};
    quant->zero_points = {zero};
    f.value(id).quant = std::move(quant);
    return id;
  };
  const ValueId boxes = quantized(f.AddInput({dtype, {1, d.anchors, 4}}, "boxes"), 0.25F, 128);
  const ValueId scores =
      quantized(f.AddInput({dtype, {1, d.anchors, d.classes + d.background}}, "scores"), 1 / 256.0F, 0);
  ValueId at = kNoValue;
  if (d.bytes) {
    std::vector<uint8_t> stored;
    for (const float a : anchors) stored.push_back(static_cast<uint8_t>(std::lround(a * 200)));
    at = quantized(f.AddConst<uint8_t>(dtype, {d.anchors, 4}, stored), 0.005F, 0);
  } else {
    at = f.AddConst<float>(dtype, {d.anchors, 4}, anchors);
  }
  const int64_t n = d.most * d.per_box;
  Node& node =
      f.AddNode(Op::kCustom, {boxes, scores, at},
                {{DType::kF32, {1, n, 4}}, {DType::kF32, {1, n}}, {DType::kF32, {1, n}}, {DType::kF32, {1}}},
                OptionsOf(d));
  node.name = "TFLite_Detection_PostProcess";
  node.version = 1;
  f.outputs = node.results;
  return module;
}

// Boxes of a third of the image size everywhere, so that many overlap.
inline std::vector<float> SeededAnchors(const Detector& d) {
  std::mt19937 random(11);
  std::vector<float> anchors;
  for (int64_t i = 0; i < d.anchors; ++i) {
    for (int k = 0; k < 2; ++k) anchors.push_back(0.2F + 0.6F * static_cast<float>(random() % 1000) / 1000);
    for (int k = 0; k < 2; ++k) anchors.push_back(0.3F + 0.2F * static_cast<float>(random() % 1000) / 1000);
  }
  return anchors;
}

// Fewer than 256 scores are distinct, so the order is unique.
inline std::vector<Tensor> SeededInputs(const Detector& d) {
  std::mt19937 random(12);
  const size_t boxes = static_cast<size_t>(d.anchors) * 4,
               scores = static_cast<size_t>(d.anchors * (d.classes + d.background));
  std::vector<float> order(scores);
  for (size_t i = 0; i < scores; ++i) order[i] = static_cast<float>(i + 1) / static_cast<float>(scores + 1);
  std::shuffle(order.begin(), order.end(), random);
  const Shape box_shape{1, d.anchors, 4}, score_shape{1, d.anchors, d.classes + d.background};
  if (!d.bytes) {
    std::vector<float> encoded(boxes);
    for (float& x : encoded) x = static_cast<float>(random() % 2000) / 1000 - 1;
    return {{{DType::kF32, box_shape}, Buffer::Of<float>(encoded)},
            {{DType::kF32, score_shape}, Buffer::Of<float>(order)}};
  }
  std::vector<uint8_t> encoded(boxes), stored;
  for (uint8_t& x : encoded) x = static_cast<uint8_t>(124 + random() % 9);
  for (const float s : order) stored.push_back(static_cast<uint8_t>(s * 256));
  return {{{DType::kU8, box_shape}, Buffer::Of<uint8_t>(encoded)},
          {{DType::kU8, score_shape}, Buffer::Of<uint8_t>(stored)}};
}

}  // namespace fusebox::vision_test
