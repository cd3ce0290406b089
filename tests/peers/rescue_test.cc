// SPDX-License-Identifier: Apache-2.0
// .tflite files with a WHILE over Flex tensor lists, which stock TFLite cannot run: after conversion it can,
// with fused ops.
#include <gmock/gmock.h>

#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::Each;
using ::testing::Field;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Rescue {
  const char* file;
  int layers;
};

Result<Written> Convert(converter::Conversion conversion, converter::Composites composites,
                        const std::string& tag) {
  conversion.options.registry = *Plugins();
  conversion.options.composites = composites;
  conversion.options.verify = converter::Verification::kSample;
  FUSEBOX_ASSIGN(const converter::Converted converted, conversion.Convert());
  Written out{TestDir() + "/" + tag + ".tflite", converted.report};
  FUSEBOX_TRY(converted.Write(out.path));
  return out;
}

class FlexLoops : public ::testing::TestWithParam<Rescue> {};

TEST_P(FlexLoops, BecomesFusedOpsThatStockTfliteRuns) {
  FUSEBOX_NEEDS_MODEL(file, std::string("tflite/") + GetParam().file);
  const auto fused = Convert(converter::FromTflite(file), converter::Composites::kFuse, "fused");
  ASSERT_OK(fused);
  EXPECT_EQ(fused->report.sites.size(), static_cast<size_t>(GetParam().layers));
  EXPECT_THAT(fused->report.sites, Each(Field(&SiteReport::fused, true)));
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  const auto ops = OpsOf(**module);
  EXPECT_EQ(ops.at("UNIDIRECTIONAL_SEQUENCE_LSTM"), GetParam().layers);
  EXPECT_EQ(ops.count("WHILE"), 0u);
  EXPECT_EQ((*module)->signatures.at(0).key, "serving_default");

  const auto loop = Convert(converter::FromTflite(file), converter::Composites::kInline, "loop");
  ASSERT_OK(loop);
  auto ours = Open(fused->path, *Plugins()), slow = Open(loop->path, *Plugins({}));
  ASSERT_OK(ours);
  ASSERT_OK(slow);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    const auto a = Invoke(**ours, inputs), b = Invoke(**slow, inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ(Difference(*a, *b), "") << "seed " << seed;
  }
  FUSEBOX_NEEDS_STOCK();
  const auto as_it_was = Stock::Open(file);
  EXPECT_FALSE(as_it_was && (*as_it_was)->Invoke(RandomInputs(**ours, 0)))
      << "stock TFLite runs the file as it is";
  auto stock = Stock::Open(fused->path);
  ASSERT_OK(stock);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ(Difference(*a, *b), "") << "seed " << seed;
  }
}

// The Keras file that action.tflite was made of.
TEST(FlexLoop, IsEqualToItsKerasFileConvertedDirectly) {
  const std::string name = "mahmuudtolba__Human-Action-Recognition/action";
  FUSEBOX_NEEDS_MODEL(file, "tflite/" + name + ".tflite");
  FUSEBOX_NEEDS_MODEL(keras, "keras/" + name + ".h5");
  const auto rescued = Convert(converter::FromTflite(file), converter::Composites::kFuse, "rescued");
  const auto direct = Convert(converter::FromKeras(keras), converter::Composites::kFuse, "direct");
  ASSERT_OK(rescued);
  ASSERT_OK(direct);
  const auto a = tflite::ReadFile(rescued->path), b = tflite::ReadFile(direct->path);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(OpsOf(**a).at("UNIDIRECTIONAL_SEQUENCE_LSTM"), OpsOf(**b).at("UNIDIRECTIONAL_SEQUENCE_LSTM"));
  auto one = Open(rescued->path, *Plugins()), other = Open(direct->path, *Plugins());
  ASSERT_OK(one);
  ASSERT_OK(other);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Tensors inputs = RandomInputs(**one, seed);
    const auto x = Invoke(**one, inputs), y = Invoke(**other, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y, 1e-6, 1e-6), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FlexLoops,
                         ::testing::Values(Rescue{"mahmuudtolba__Human-Action-Recognition/action.tflite", 2},
                                           Rescue{"argyarijal19__micropython/model_lstm.tflite", 1}),
                         [](const auto& info) { return info.param.layers == 2 ? "action" : "model_lstm"; });

}  // namespace
}  // namespace fusebox::testing
