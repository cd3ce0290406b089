// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "host/session.h"
#include "plugins/vision/suppression.h"
#include "tests/plugins/vision/detector.h"

namespace fusebox::vision_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vision::Box;

std::shared_ptr<Registry> Vision() {
  Config config;
  config.plugins = {FUSEBOX_VISION};
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

struct Found {
  std::vector<float> boxes, classes, scores;
  float count = -1;
};

Result<Found> Detect(const Detector& d, const std::vector<float>& anchors,
                     const std::vector<Tensor>& inputs) {
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(ModuleOf(d, anchors), {.registry = Vision()}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  for (size_t i = 0; i < inputs.size(); ++i) FUSEBOX_TRY(session->SetInput(static_cast<int>(i), inputs[i]));
  FUSEBOX_TRY(session->Run());
  std::vector<std::vector<float>> values;
  for (int i = 0; i < 4; ++i) {
    FUSEBOX_ASSIGN(const Tensor out, session->output(i));
    const auto data = out.data.As<float>();
    values.emplace_back(data.begin(), data.end());
  }
  return Found{values[0], values[1], values[2], values[3].at(0)};
}

// Three anchors: the second nearly on the first, the third elsewhere; boxes that are their anchors.
const std::vector<float> kThree = {0.5F, 0.5F, 0.4F, 0.4F, 0.5F, 0.52F, 0.4F, 0.4F, 0.1F, 0.1F, 0.2F, 0.2F};
// Of each: the background, class 0, class 1.
const std::vector<float> kScores = {0.9F, 0.6F, 0.1F, 0.9F, 0.1F, 0.7F, 0.9F, 0.4F, 0.2F};

Detector Three() { return {.anchors = 3, .classes = 2, .most = 4}; }

std::vector<Tensor> Scored(const Detector& d, const std::vector<float>& scores) {
  return {{{DType::kF32, {1, 3, 4}}, Buffer::Of<float>(std::vector<float>(12, 0.0F))},
          {{DType::kF32, {1, 3, d.classes + d.background}}, Buffer::Of<float>(scores)}};
}

TEST(Detection, FastSuppressesByTheBestScoreOfAnyClass) {
  const Detector d = Three();
  const auto found = Detect(d, kThree, Scored(d, kScores));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->count, 2);
  EXPECT_THAT(found->classes, ElementsAre(1, 0, 0, 0)) << "the background is no class";
  EXPECT_THAT(found->scores, ElementsAre(0.7F, 0.4F, 0, 0));
  const std::vector<float> first = {0.3F, 0.32F, 0.7F, 0.72F};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(found->boxes[i], first[i]);
}

TEST(Detection, RegularSuppressesWithinEachClass) {
  Detector d = Three();
  d.regular = true;
  const auto found = Detect(d, kThree, Scored(d, kScores));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->count, 3);
  EXPECT_THAT(found->classes, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(found->scores, ElementsAre(0.7F, 0.6F, 0.4F, 0));
  d.per_class = 1;
  EXPECT_EQ(Detect(d, kThree, Scored(d, kScores))->count, 2);
}

TEST(Detection, TakesANumberForAFlag) {
  for (const bool regular : {false, true}) {
    Detector d = Three();
    d.regular = regular;
    d.regular_is_number = true;
    const auto found = Detect(d, kThree, Scored(d, kScores));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->count, regular ? 3 : 2);
  }
}

TEST(Detection, ABoxIsGivenWithAsManyClassesAsAreAskedFor) {
  Detector d = Three();
  d.per_box = 2;
  const auto found = Detect(d, kThree, Scored(d, kScores));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->count, 2);
  EXPECT_THAT(found->classes, ElementsAre(1, 0, 0, 1, 0, 0, 0, 0));
  EXPECT_THAT(found->scores, ElementsAre(0.7F, 0.1F, 0.4F, 0.2F, 0, 0, 0, 0));
}

TEST(Detection, NothingAboveTheThresholdIsNothingFound) {
  Detector d = Three();
  d.least_score = 2;
  for (const bool regular : {false, true}) {
    d.regular = regular;
    const auto found = Detect(d, kThree, Scored(d, std::vector<float>(9, 0.5F)));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->count, 0);
    EXPECT_THAT(found->scores, ElementsAre(0, 0, 0, 0));
  }
}

TEST(Detection, ScoresThatAreNoNumbersAreNeverFound) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool regular : {false, true}) {
    Detector d = Three();
    d.regular = regular;
    d.least_score = -1;
    d.most_overlap = 1;
    const auto found = Detect(d, kThree, Scored(d, {nan, nan, nan, nan, nan, nan, 0, 0.4F, nan}));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->count, 1);
    EXPECT_EQ(found->scores[0], 0.4F);
  }
}

TEST(Detection, ABoxWithOneScoreThatIsNoNumberIsFoundByItsOthers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& scores :
       {std::vector<float>{0, nan, 0.7F}, {0, 0.7F, nan}, {nan, 0.7F, 0.1F}}) {
    const Detector d = {.anchors = 3, .classes = 2, .most = 4, .most_overlap = 0.2};
    std::vector<float> all(9, 0.0F);
    std::copy(scores.begin(), scores.end(), all.begin());
    const auto found = Detect(d, kThree, Scored(d, all));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->count, 1);
    EXPECT_EQ(found->scores[0], 0.7F);
  }
}

TEST(Detection, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](const Detector& d) {
    const auto found = Detect(d, kThree, Scored(d, std::vector<float>(9, 0.5F)));
    return found ? std::string("runs") : found.error().message;
  };
  Detector d = Three();
  d.most = 0;
  EXPECT_THAT(refused(d), HasSubstr("max_detections is 0"));
  d = Three();
  d.most_overlap = 1.5;
  EXPECT_THAT(refused(d), HasSubstr("nms_iou_threshold"));
  d = Three();
  d.classes = 1;
  d.background = 2;
  EXPECT_THAT(refused(d), HasSubstr("num_classes"));
}

TEST(Suppression, BoxesWithoutAreaOverlapNothing) {
  const Box box{0, 0, 1, 1}, line{0, 0, 1, 0}, turned{1, 1, 0, 0};
  EXPECT_EQ(vision::Overlap(box, box), 1);
  EXPECT_EQ(vision::Overlap(box, line), 0);
  EXPECT_FLOAT_EQ(vision::Overlap(box, {0.5F, 0, 1.5F, 1}), 1 / 3.0F);
  EXPECT_EQ(vision::Overlap(box, {2, 2, 3, 3}), 0);
  EXPECT_EQ(vision::Overlap(turned, {2, 2, 3, 3}), 0);
}

TEST(Suppression, OfEqualScoresTheFirstStays) {
  const std::vector<Box> boxes(3, Box{0, 0, 1, 1});
  const std::vector<float> scores(3, 0.5F);
  std::vector<int32_t> order(3), kept(3);
  EXPECT_EQ(vision::Suppress(boxes, scores, {0, 0.5F, 3}, order.data(), kept.data()), 1);
  EXPECT_EQ(kept[0], 0);
}

}  // namespace
}  // namespace fusebox::vision_test
