// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/vision.h"

#include <string>

#include "tests/testing/models/vision_parts.h"

namespace fusebox::test_models {
namespace {

// Corners in order: a row may store any two opposite ones.
BoxColumns Corners(Expressions& e, const Ref& boxes) {
  const std::vector<Ref> c = e.Columns(boxes);
  return {e.Like("Minimum", c[0], c[2]), e.Like("Minimum", c[1], c[3]), e.Like("Maximum", c[0], c[2]),
          e.Like("Maximum", c[1], c[3])};
}

// Result k of a composite: values[k] if found[k], else 0.
Ref Packed(Expressions& e, const std::vector<Ref>& found, const std::vector<Ref>& values, const Ref& zero,
           const Shape& each) {
  std::vector<Ref> parts;
  for (size_t k = 0; k < values.size(); ++k) {
    parts.push_back(e.f.Op("SelectV2", {found[k], values[k], zero}, each));
  }
  std::vector<int64_t> shape(each.dims().begin(), each.dims().end());
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  return e.f.Op("Pack", parts, Shape(shape),
                {Attr("N", static_cast<int64_t>(parts.size())), Attr("axis", 0)});
}

Ref HowMany(Expressions& e, const std::vector<Ref>& found) {
  Ref count = e.Cast(found[0], tf::DT_INT32);
  for (size_t k = 1; k < found.size(); ++k) count = e.Like("AddV2", count, e.Cast(found[k], tf::DT_INT32));
  return count;
}

Status WriteCalling(SavedModelBuilder& model, const std::string& dir, const FunctionBuilder& composite,
                    const std::vector<std::pair<std::string, Shape>>& inputs, VariableRef shift,
                    const std::vector<TensorValue>& constants, const std::vector<std::string>& outputs) {
  FunctionBuilder& f = model.AddFunction("__inference_call");
  std::vector<Ref> arguments;
  std::vector<std::string> names;
  for (const auto& [name, shape] : inputs) {
    const bool ints = name == "indices";
    arguments.push_back(f.Arg(name, ints ? tf::DT_INT32 : tf::DT_FLOAT, shape));
    names.push_back(name);
  }
  // A weight, so that the model has one.
  arguments[0] = f.Op("AddV2", {arguments[0], f.Read(shift)}, arguments[0].shape);
  for (const TensorValue& value : constants) arguments.push_back(f.Const(value, "option"));
  f.Return(f.Call(composite, arguments));
  model.AddSignature("serving_default", f, names, outputs);
  return model.Write(dir);
}

}  // namespace

Status WriteNonMaxSuppression(const std::string& dir, uint64_t seed) {
  constexpr int kBoxes = 8;
  constexpr int kMost = 5;
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("non_max_suppression_padded_v2");
  f.SetAttr(Attr("_implements", "non_max_suppression_padded_v2"));
  const Ref boxes = f.Arg("boxes", tf::DT_FLOAT, {kBoxes, 4});
  const Ref scores = f.Arg("scores", tf::DT_FLOAT, {kBoxes});
  f.Arg("max_output_size", tf::DT_INT32, kScalar);
  const Ref overlap = f.Arg("iou_threshold", tf::DT_FLOAT, kScalar);
  const Ref least = f.Arg("score_threshold", tf::DT_FLOAT, kScalar);
  Expressions e(f);
  const Suppressed kept = SuppressGreedily(e, Corners(e, boxes), scores, e.Like("Greater", scores, least),
                                           overlap, "GreaterEqual", kMost);
  f.Return({Packed(e, kept.found, kept.at, e.Constant(0), kScalar), HowMany(e, kept.found)});
  const VariableRef shift =
      model.AddVariable("shift", Random(seed).Uniform({kBoxes, 4}, -0.1F, 0.1F), "shift");
  return WriteCalling(model, dir, f, {{"boxes", {kBoxes, 4}}, {"scores", {kBoxes}}}, shift,
                      {Int(kMost), Float(0.4F), Float(0.05F)}, {"indices", "count"});
}

Status WriteDetectionPostProcess(const std::string& dir, uint64_t seed) {
  constexpr int kAnchors = 6;
  constexpr int kClasses = 3;
  constexpr int kMost = 4;
  constexpr float kScales[] = {10, 10, 5, 5};
  constexpr float kOverlap = 0.5F;
  constexpr float kLeast = 0.1F;
  Random random(seed);
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("TFLite_Detection_PostProcess");
  f.SetAttr(
      Attr("_implements", "TFLite_Detection_PostProcess",
           {Attr("max_detections", kMost), Attr("max_classes_per_detection", 1),
            Attr("num_classes", kClasses), Attr("nms_score_threshold", kLeast),
            Attr("nms_iou_threshold", kOverlap), Attr("y_scale", kScales[0]), Attr("x_scale", kScales[1]),
            Attr("h_scale", kScales[2]), Attr("w_scale", kScales[3]), Attr("use_regular_nms", false)}));
  const Ref encoded = f.Arg("box_encodings", tf::DT_FLOAT, {1, kAnchors, 4});
  const Ref predicted = f.Arg("class_predictions", tf::DT_FLOAT, {1, kAnchors, kClasses + 1});
  const Ref anchors = f.Arg("anchors", tf::DT_FLOAT, {kAnchors, 4});
  Expressions e(f);
  const std::vector<Ref> code = e.Columns(e.Reshaped(encoded, {kAnchors, 4}));
  const std::vector<Ref> anchor = e.Columns(anchors);
  const auto center = [&](size_t i) {
    const Ref moved = e.Like("Mul", e.Like("RealDiv", code[i], e.Constant(kScales[i])), anchor[i + 2]);
    return e.Like("AddV2", moved, anchor[i]);
  };
  const auto half = [&](size_t i) {
    const Ref size = e.Like("Exp", e.Like("RealDiv", code[i + 2], e.Constant(kScales[i + 2])));
    return e.Like("Mul", e.Like("Mul", size, e.Constant(0.5F)), anchor[i + 2]);
  };
  const Ref y = center(0);
  const Ref x = center(1);
  const Ref height = half(0);
  const Ref width = half(1);
  const BoxColumns boxes = {e.Like("Sub", y, height), e.Like("Sub", x, width), e.Like("AddV2", y, height),
                            e.Like("AddV2", x, width)};
  // The first score belongs to the background.
  const Ref scores = f.Op("Slice",
                          {e.Reshaped(predicted, {kAnchors, kClasses + 1}), f.Const(Ints({0, 1}), "begin"),
                           f.Const(Ints({kAnchors, kClasses}), "size")},
                          {kAnchors, kClasses});
  const Ref best = e.Reduced("Max", scores, 1, {kAnchors}, {Attr("keep_dims", false)});
  const Ref number = e.Reduced("ArgMax", scores, 1, {kAnchors}, {Attr("output_type", tf::DT_INT32)});
  const Suppressed kept = SuppressGreedily(e, boxes, best, e.Like("GreaterEqual", best, e.Constant(kLeast)),
                                           e.Constant(kOverlap), "Greater", kMost);
  const Ref rows = f.Op("Pack", {boxes.top, boxes.left, boxes.bottom, boxes.right}, {kAnchors, 4},
                        {Attr("N", 4), Attr("axis", 1)});
  std::vector<Ref> of_boxes;
  std::vector<Ref> of_classes;
  std::vector<Ref> of_scores;
  for (const Ref& at : kept.at) {
    of_boxes.push_back(e.At(rows, at, {4}));
    of_classes.push_back(e.At(e.Cast(number, tf::DT_FLOAT), at, kScalar));
    of_scores.push_back(e.At(best, at, kScalar));
  }
  const Ref zero = e.Constant(0.0F);
  f.Return({e.Reshaped(Packed(e, kept.found, of_boxes, zero, {4}), {1, kMost, 4}),
            e.Reshaped(Packed(e, kept.found, of_classes, zero, kScalar), {1, kMost}),
            e.Reshaped(Packed(e, kept.found, of_scores, zero, kScalar), {1, kMost}),
            e.Reshaped(e.Cast(HowMany(e, kept.found), tf::DT_FLOAT), {1})});
  const VariableRef shift =
      model.AddVariable("shift", random.Uniform({1, kAnchors, 4}, -0.1F, 0.1F), "shift");
  return WriteCalling(
      model, dir, f,
      {{"box_encodings", {1, kAnchors, 4}}, {"class_predictions", {1, kAnchors, kClasses + 1}}}, shift,
      {random.Uniform({kAnchors, 4}, 0.2F, 0.8F)}, {"boxes", "classes", "scores", "count"});
}

Status WriteDenseImageWarp(const std::string& dir, uint64_t seed) {
  constexpr int kHeight = 4;
  constexpr int kWidth = 5;
  constexpr int kChannels = 2;
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("dense_image_warp");
  f.SetAttr(Attr("_implements", "addons:DenseImageWarp"));
  const Ref image = f.Arg("image", tf::DT_FLOAT, {1, kHeight, kWidth, kChannels});
  const Ref flow = f.Arg("flow", tf::DT_FLOAT, {1, kHeight, kWidth, 2});
  Expressions e(f);
  constexpr int kPixels = kHeight * kWidth;
  std::vector<float> rows;
  std::vector<float> columns;
  for (int i = 0; i < kPixels; ++i) {
    rows.push_back(static_cast<float>(i / kWidth));
    columns.push_back(static_cast<float>(i % kWidth));
  }
  const std::vector<Ref> by = e.Columns(e.Reshaped(flow, {kPixels, 2}));
  // The nearest pixel at or before the position that has a successor, and the distance from it.
  struct Place {
    Ref at, share;
  };
  const auto place = [&](const std::vector<float>& grid, const Ref& moved, int size) {
    const Ref where = e.Like("Sub", f.Const(Floats({kPixels}, grid), "grid"), moved);
    const Ref below = e.Like("Minimum", e.Like("Maximum", e.Like("Floor", where), e.Constant(0.0F)),
                             e.Constant(static_cast<float>(size - 2)));
    const Ref share =
        e.Like("Minimum", e.Like("Maximum", e.Like("Sub", where, below), e.Constant(0.0F)), e.Constant(1.0F));
    return Place{e.Cast(below, tf::DT_INT32), e.Reshaped(share, {kPixels, 1})};
  };
  const Place y = place(rows, by[0], kHeight);
  const Place x = place(columns, by[1], kWidth);
  const Ref pixels = e.Reshaped(image, {kPixels, kChannels});
  const Ref corner = e.Like("AddV2", e.Like("Mul", y.at, e.Constant(kWidth)), x.at);
  const auto pixel = [&](int further) {
    return e.At(pixels, e.Like("AddV2", corner, e.Constant(further)), {kPixels, kChannels});
  };
  const auto between = [&](const Ref& a, const Ref& b, const Ref& share) {
    return e.Like("AddV2", e.Like("Mul", e.Like("Sub", b, a), share), a);
  };
  const Ref top = between(pixel(0), pixel(1), x.share);
  const Ref bottom = between(pixel(kWidth), pixel(kWidth + 1), x.share);
  f.Return({e.Reshaped(between(top, bottom, y.share), {1, kHeight, kWidth, kChannels})});
  const VariableRef shift =
      model.AddVariable("shift", Random(seed).Uniform({1, 1, 1, kChannels}, -0.1F, 0.1F), "shift");
  return WriteCalling(model, dir, f, {{"image", image.shape}, {"flow", flow.shape}}, shift, {}, {"warped"});
}

Status WriteMaxUnpooling(const std::string& dir, uint64_t seed) {
  constexpr int kBatch = 2;
  constexpr int kSize = 2;
  constexpr int kWidth = 2 * kSize;
  constexpr int kChannels = 3;
  constexpr int kValues = kSize * kSize * kChannels;
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("max_unpooling_2d");
  f.SetAttr(Attr("_implements", "addons:MaxUnpooling2D",
                 {Attr("pool_size", std::vector<int64_t>{2, 2}), Attr("strides", std::vector<int64_t>{2, 2}),
                  Attr("padding", "SAME")}));
  const Ref values = f.Arg("updates", tf::DT_FLOAT, {kBatch, kSize, kSize, kChannels});
  const Ref indices = f.Arg("indices", tf::DT_INT32, values.shape);
  Expressions e(f);
  // Row and column come from the index, batch and channel from the position of the value; overlapping values
  // are added.
  const auto over = [&](const Ref& x, int32_t by) { return e.Like("FloorDiv", x, e.Constant(by)); };
  const auto within = [&](const Ref& x, int32_t size) { return e.Like("FloorMod", x, e.Constant(size)); };
  const Ref number = f.Const(IntsFrom(0, values.shape), "numbers");
  const std::vector<Ref> place = {over(number, kValues), over(indices, kWidth * kChannels),
                                  within(over(indices, kChannels), kWidth), within(number, kChannels)};
  const Ref places =
      f.Op("Pack", place, {kBatch, kSize, kSize, kChannels, 4}, {Attr("N", 4), Attr("axis", -1)});
  f.Return({f.Op("ScatterNd", {places, values, f.Const(Ints({kBatch, kWidth, kWidth, kChannels}), "shape")},
                 {kBatch, kWidth, kWidth, kChannels})});
  const VariableRef shift =
      model.AddVariable("shift", Random(seed).Uniform({1, 1, 1, kChannels}, -0.1F, 0.1F), "shift");
  return WriteCalling(model, dir, f, {{"updates", values.shape}, {"indices", values.shape}}, shift, {},
                      {"unpooled"});
}

}  // namespace fusebox::test_models
