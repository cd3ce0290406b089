// SPDX-License-Identifier: Apache-2.0
// samples/plugins do what their pages state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/plugins/composite.h"

namespace fusebox {
namespace {

using ::testing::HasSubstr;

const Type kRow{DType::kF32, Shape({3})};

Tensor Row(const std::vector<float>& values) { return {kRow, Buffer::Of<float>(values)}; }

TEST(SampleSwiglu, ComputesItsFormula) {
  const testing::Composite c{"acme.swiglu", {kRow, kRow}, {kRow}};
  const std::vector<float> gate = {-2, 0, 3}, up = {1, 5, -2};
  const auto out = c.Run(SAMPLE_SWIGLU, {Row(gate), Row(up)});
  ASSERT_TRUE(out) << out.error().message;
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR((*out)[0].data.As<float>()[i], gate[i] / (1 + std::exp(-gate[i])) * up[i], 1e-6) << i;
}

TEST(SampleSwiglu, DeclinesWithTheReason) {
  const testing::Composite other{"acme.swiglu", {kRow, {DType::kF32, Shape({4})}}, {kRow}};
  EXPECT_THAT(other.WhyNot(SAMPLE_SWIGLU), HasSubstr("the operands differ in shape"));
  const testing::Composite integers{"acme.swiglu", {{DType::kI32, Shape({3})}, kRow}, {kRow}};
  EXPECT_THAT(integers.WhyNot(SAMPLE_SWIGLU), HasSubstr("only f32 is supported"));
}

// Values of a fixed pattern in [-1, 1].
std::vector<float> Pattern(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1;
  return values;
}

TEST(SampleSwigluBlock, IsTheGatedMlp) {
  constexpr int64_t kD = 21, kH = 140;
  constexpr size_t d = kD, h = kH;
  const Type x{DType::kF32, Shape({2, 9, kD})}, wide{DType::kF32, Shape({kH, kD})},
      narrow{DType::kF32, Shape({kD, kH})};
  const std::vector<float> rows = Pattern(18 * d, 1), gate = Pattern(h * d, 2), up = Pattern(h * d, 3),
                           down = Pattern(h * d, 4);
  testing::Composite c{"acme.swiglu_block", {x, wide, wide, narrow}, {x}};
  c.constants = {
      {}, {wide, Buffer::Of<float>(gate)}, {wide, Buffer::Of<float>(up)}, {narrow, Buffer::Of<float>(down)}};
  const auto out = c.Run(SAMPLE_SWIGLU_BLOCK, {{x, Buffer::Of<float>(rows)}});
  ASSERT_TRUE(out) << out.error().message;
  for (size_t r = 0; r < 18; ++r) {
    std::vector<double> hidden(h);
    for (size_t i = 0; i < h; ++i) {
      double g = 0, u = 0;
      for (size_t k = 0; k < d; ++k) {
        g += double{rows[r * d + k]} * gate[i * d + k];
        u += double{rows[r * d + k]} * up[i * d + k];
      }
      hidden[i] = g / (1 + std::exp(-g)) * u;
    }
    for (size_t i = 0; i < d; ++i) {
      double y = 0;
      for (size_t k = 0; k < h; ++k) y += hidden[k] * down[i * h + k];
      EXPECT_NEAR((*out)[0].data.As<float>()[r * d + i], y, 1e-4) << r << ", " << i;
    }
  }
}

TEST(SampleSwigluBlock, DeclinesWithTheReason) {
  const Type x{DType::kF32, Shape({3, 4})}, w{DType::kF32, Shape({4, 4})}, other{DType::kF32, Shape({4, 5})};
  const testing::Composite computed{"acme.swiglu_block", {x, w, w, w}, {x}};
  EXPECT_THAT(computed.WhyNot(SAMPLE_SWIGLU_BLOCK), HasSubstr("are not constant"));
  testing::Composite misfit{"acme.swiglu_block", {x, w, w, other}, {x}};
  const std::vector<float> some(20);
  misfit.constants = {{},
                      {w, Buffer::Of<float>(std::vector<float>(16))},
                      {w, Buffer::Of<float>(std::vector<float>(16))},
                      {other, Buffer::Of<float>(some)}};
  EXPECT_THAT(misfit.WhyNot(SAMPLE_SWIGLU_BLOCK), HasSubstr("do not fit together"));
}

TEST(SampleSwigluBlock, NamesTheExtensionThatItsManifestLacks) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "com.acme.swiglu_block";
  fs::remove_all(folder);
  fs::copy(SAMPLE_SWIGLU_BLOCK, folder);
  std::ifstream in(folder / "fusebox-plugin.json");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("\"fusebox.gemm/1\", "), 18, "");
  std::ofstream(folder / "fusebox-plugin.json") << text;
  const Type x{DType::kF32, Shape({4, 4})};
  testing::Composite c{"acme.swiglu_block", {x, x, x, x}, {x}};
  const Tensor some{x, Buffer::Of<float>(std::vector<float>(16))};
  c.constants = {{}, some, some, some};
  EXPECT_THAT(c.WhyNot(folder.string()), HasSubstr("there is no fusebox.gemm/1: list it under"));
  EXPECT_EQ(c.WhyNot(SAMPLE_SWIGLU_BLOCK), "");
}

TEST(SampleGeluRule, EmitsTheBuiltinOp) {
  const std::string folder = FUSEBOX_SOURCE_DIR "/samples/plugins/gelu_rule";
  testing::Composite c{"acme.gelu", {kRow}, {kRow}};
  c.attrs.Set("approximate", false);
  const auto out = c.Run(folder, {Row({-1, 0, 2})});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_NEAR((*out)[0].data.As<float>()[0], -0.158655f, 1e-5);
  EXPECT_NEAR((*out)[0].data.As<float>()[2], 1.954500f, 1e-5);
  c.attrs.Set("approximate", 3.0);
  EXPECT_NE(c.WhyNot(folder), "");
}

}  // namespace
}  // namespace fusebox
