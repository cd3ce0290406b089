// SPDX-License-Identifier: Apache-2.0
// Pairs of recurrent layers that the op for both directions does not take: two ops, or two loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using Cell = samples::RecurrentOptions::Cell;
using Merge = samples::RecurrentOptions::Merge;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

TEST(Bidirectional, OfTwoSizesIsTwoOpsAndSaysWhy) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteRecurrent(
      dir, 1, {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kConcat, .backward_units = 3}));
  converter::Options options;
  options.registry = *Plugins();
  options.verify = converter::Verification::kStrict;
  const auto written = Convert(dir, options, "fused");
  ASSERT_OK(written);
  ASSERT_EQ(written->report.sites.size(), 3u);
  EXPECT_FALSE(written->report.sites[0].fused);
  EXPECT_THAT(written->report.sites[0].why, HasSubstr("the op requires equal sizes"));
  for (size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(written->report.sites[i].fused)
        << written->report.sites[i].why << written->report.sites[i].verification;
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)["UNIDIRECTIONAL_SEQUENCE_LSTM"], 2);
}

TEST(Bidirectional, OfOtherLayersIsTwoOps) {
  for (const auto& [cell, op] : {std::pair{Cell::kGru, "fusebox.gru"},
                                 {Cell::kGruResetBefore, "fusebox.gru"},
                                 {Cell::kSimpleRnn, "UNIDIRECTIONAL_SEQUENCE_RNN"}}) {
    for (const bool kept_last : {false, true}) {
      const std::string dir = TestDir() + "/model";
      ASSERT_OK(samples::WriteRecurrent(dir, 1,
                                        {.cell = cell,
                                         .return_sequences = !kept_last,
                                         .last_step_only = kept_last,
                                         .merge = Merge::kConcat}));
      converter::Options options;
      options.registry = *Plugins();
      options.verify = converter::Verification::kStrict;
      const auto written = Convert(dir, options, "fused");
      ASSERT_OK(written);
      const auto module = tflite::ReadFile(written->path);
      ASSERT_OK(module);
      EXPECT_EQ(OpsOf(**module)[op], 2);
      for (const SiteReport& site : written->report.sites)
        EXPECT_THAT(site.verification, HasSubstr("agrees (f64")) << site.why;
    }
  }
}

TEST(Bidirectional, WithoutARuleIsTwoLoops) {
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(samples::WriteRecurrent(
      dir, 1, {.cell = Cell::kLstm, .return_sequences = true, .merge = Merge::kConcat}));
  converter::Options options;
  options.registry = *Plugins({});
  const auto written = Convert(dir, options, "loops");
  ASSERT_OK(written);
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)["WHILE"], 2);
}

}  // namespace
}  // namespace fusebox::testing
