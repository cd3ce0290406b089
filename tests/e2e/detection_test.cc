// SPDX-License-Identifier: Apache-2.0
// What stands behind a detector when it is saved by the Object Detection API of TensorFlow 2 and its kin:
// each image of a batch on its own, in a loop over tensor lists, with as many boxes as are found; or all of
// it as one op.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using namespace fusebox::models;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

// Writes, converts and runs the model; its outputs in alphabetic order.
Result<Tensors> Computed(SavedModelBuilder& model, const Tensors& inputs) {
  const std::string dir = TestDir() + "/model";
  FUSEBOX_TRY(model.Write(dir));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins({"fusebox.vision"}));
  FUSEBOX_ASSIGN(const Written written, Convert(dir, options, "detection"));
  FUSEBOX_ASSIGN(const auto session, Open(written.path, options.registry));
  return Invoke(*session, inputs);
}

constexpr int kBoxes = 4, kKept = 3;
const tf::DataType kFloat = tf::DT_FLOAT;

// Two boxes on one place, one beside them, one whose score is low.
const std::vector<float> kOneImage = {0, 0, 1, 1, 0, 0, 1, 0.9f, 0, 2, 1, 3, 5, 5, 6, 6};

Attr Of(const char* key, tf::DataType type = kFloat) { return {key, type}; }

// The scores of the boxes that are kept and above 0.2, with zeros behind them.
models::Ref BestScores(FunctionBuilder& f, const models::Ref& boxes, const models::Ref& scores) {
  const auto selected = f.Ops(
      "NonMaxSuppressionV5",
      {boxes, scores, f.Const(Int(kKept)), f.Const(Float(0.5f)), f.Const(Float(0.05f)), f.Const(Float(0))},
      {{-1}, {-1}, kScalar});
  const models::Ref above = f.Op("Greater", {selected[1], f.Const(Float(0.2f))}, {-1});
  const models::Ref where = f.Op("Where", {above}, {-1, 1}, {Of("T", tf::DT_BOOL)});
  const models::Ref places = f.Op("Reshape", {where, f.Const(Ints({-1}))}, {-1});
  const models::Ref found = f.Op("GatherV2", {selected[1], places, f.Const(Int(0))}, {-1});
  const models::Ref count = f.Op("Size", {found}, kScalar, {Of("out_type", tf::DT_INT32)});
  const models::Ref missing = f.Op("Sub", {f.Const(Int(kKept)), count}, kScalar);
  const models::Ref pad = f.Op("Pack", {f.Const(Int(0)), missing}, {2}, {Attr("axis", 0), Attr("N", 2)});
  const models::Ref pads = f.Op("Pack", {pad}, {1, 2}, {Attr("axis", 0), Attr("N", 1)});
  const models::Ref padded = f.Op("PadV2", {found, pads, f.Const(Float(0))}, {-1});
  return f.Op("Reshape", {padded, f.Const(Ints({kKept}))}, {kKept});
}

TEST(Detection, LoopsOverTheImagesOfABatch) {
  DefineOp(
      "NonMaxSuppressionV5(boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: "
      "T, "
      "soft_nms_sigma: T) -> (selected_indices: int32, selected_scores: T, valid_outputs: int32)");
  DefineOp("Where(input: T) -> (index: int64)");
  DefineOp("Size(input: T) -> (output: out_type)");
  DefineOp("PadV2(input: T, paddings: Tpaddings, constant_values: T) -> (output: T)");
  SavedModelBuilder model;
  const Attr element = Of("element_dtype");
  const auto loop = [](FunctionBuilder& f) {
    std::vector<models::Ref> args;
    for (const char* number : {"i", "n"}) args.push_back(f.Arg(number, tf::DT_INT32, kScalar));
    for (const char* list : {"boxes", "scores", "found"})
      args.push_back(f.Arg(list, tf::DT_VARIANT, kScalar));
    return args;
  };
  FunctionBuilder& cond = model.AddFunction("map_while_cond");
  const auto asked = loop(cond);
  cond.Return({cond.Op("Less", {asked[0], asked[1]}, kScalar)});
  FunctionBuilder& body = model.AddFunction("map_while_body");
  const auto a = loop(body);
  const models::Ref boxes =
      body.Op("TensorListGetItem", {a[2], a[0], body.Const(Ints({kBoxes, 4}))}, {kBoxes, 4}, {element});
  const models::Ref scores =
      body.Op("TensorListGetItem", {a[3], a[0], body.Const(Ints({kBoxes}))}, {kBoxes}, {element});
  const models::Ref found =
      body.Op("TensorListSetItem", {a[4], a[0], BestScores(body, boxes, scores)}, kScalar, {element});
  body.Return({body.Op("AddV2", {a[0], body.Const(Int(1))}, kScalar), a[1], a[2], a[3], found});

  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref x = f.Arg("boxes", kFloat, {-1, kBoxes, 4}), y = f.Arg("scores", kFloat, {-1, kBoxes});
  const models::Ref shape = f.Op("Shape", {x}, {3}, {Of("out_type", tf::DT_INT32)});
  const models::Ref images =
      f.Op("StridedSlice", {shape, f.Const(Ints({0})), f.Const(Ints({1})), f.Const(Ints({1}))}, kScalar,
           {Attr("shrink_axis_mask", 1)});
  const models::Ref zero = f.Const(Int(0));
  const auto results =
      f.While(cond, body,
              {zero, images, f.Op("TensorListFromTensor", {x, f.Const(Ints({kBoxes, 4}))}, kScalar),
               f.Op("TensorListFromTensor", {y, f.Const(Ints({kBoxes}))}, kScalar),
               f.Op("TensorListReserve", {f.Const(Int(-1)), images}, kScalar, {element})});
  f.Return({f.Op("TensorListStack", {results[4], f.Const(Ints({kKept}))}, {-1, kKept}, {element})});
  model.AddSignature("serving_default", f, {"boxes", "scores"}, {"found"});

  std::vector<float> places = kOneImage;
  places.insert(places.end(), kOneImage.begin(), kOneImage.end());
  const auto out =
      Computed(model, {testing::Floats({2, kBoxes, 4}, places),
                       testing::Floats({2, kBoxes}, {0.5f, 0.6f, 0.9f, 0.1f, 0.7f, 0.3f, 0.15f, 0.8f})});
  ASSERT_OK(out);
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(0.9f, 0.6f, 0, 0.8f, 0.7f, 0));
}

TEST(Detection, IsOneOpForAllClasses) {
  DefineOp(
      "CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32, "
      "max_total_size: int32, "
      "iou_threshold: float, score_threshold: float) -> (nmsed_boxes: float, nmsed_scores: float, "
      "nmsed_classes: float, "
      "valid_detections: int32)");
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref x = f.Arg("boxes", kFloat, {1, kBoxes, 1, 4}),
                    y = f.Arg("scores", kFloat, {1, kBoxes, 2});
  f.Return(f.Ops("CombinedNonMaxSuppression",
                 {x, y, f.Const(Int(2)), f.Const(Int(5)), f.Const(Float(0.5f)), f.Const(Float(0.2f))},
                 {{1, 5, 4}, {1, 5}, {1, 5}, {1}}, {Attr("clip_boxes", true), Attr("pad_per_class", false)}));
  model.AddSignature("serving_default", f, {"boxes", "scores"},
                     {"a_boxes", "b_scores", "c_classes", "d_count"});
  const auto out =
      Computed(model, {testing::Floats({1, kBoxes, 1, 4}, kOneImage),
                       testing::Floats({1, kBoxes, 2}, {0.5f, 0.3f, 0.6f, 0.25f, 0.9f, 0.1f, 0.7f, 0.1f})});
  ASSERT_OK(out);
  ASSERT_EQ(out->size(), 4u);
  const std::vector<float> boxes = {0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(FloatsOf((*out)[0]), boxes) << "clipped";
  EXPECT_THAT(FloatsOf((*out)[1]), ElementsAre(0.9f, 0.7f, 0.3f, 0, 0)) << "two of a class at most";
  EXPECT_THAT(FloatsOf((*out)[2]), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT((*out)[3].data.As<int32_t>(), ElementsAre(3));
}

}  // namespace
}  // namespace fusebox::testing
