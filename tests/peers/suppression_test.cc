// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION_V4 and _V5 beside stock TFLite.
#include <gtest/gtest.h>

#include <cmath>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Noise;

struct Boxes {
  float overlap = 0.5F, least = 0.2F, sigma = 0;
  int32_t most = 20;
  bool soft = false;

  std::unique_ptr<Module> Build() const {
    Net net;
    const auto scalar = [&](float value) { return net.Const<float>(DType::kF32, {}, {value}); };
    std::vector<ValueId> operands = {net.Input(DType::kF32, {60, 4}), net.Input(DType::kF32, {60}),
                                     net.Const<int32_t>(DType::kI32, {}, {most}), scalar(overlap),
                                     scalar(least)};
    std::vector<Type> results = {net.Of(DType::kI32, {most}), net.Of(DType::kI32, {})};
    if (soft) {
      operands.push_back(scalar(sigma));
      results.insert(results.begin() + 1, net.Of(DType::kF32, {most}));
    }
    const Op op = soft ? Op::kNonMaxSuppressionV5 : Op::kNonMaxSuppressionV4;
    return net.Take(net.function().AddNode(op, operands, results).results);
  }
};

// On a grid, so that overlaps fall on the threshold too. Every box has an area: stock selects one without
// again and again.
std::vector<float> Corners(uint32_t seed) {
  std::vector<float> corners = Noise<float>(240, seed, 0, 8);
  for (float& c : corners) c = std::floor(c);
  for (size_t i = 0; i < corners.size(); i += 4) {
    for (size_t side : {i, i + 1}) corners[side + 2] += corners[side + 2] == corners[side] ? 1.0F : 0.0F;
  }
  return corners;
}

TEST(SuppressionPeers, KeepsWhatStockKeeps) {
  FUSEBOX_NEEDS_STOCK();
  for (const Boxes& boxes :
       {Boxes{}, Boxes{.overlap = 0}, Boxes{.overlap = 0.3F}, Boxes{.overlap = 1}, Boxes{.most = 3},
        Boxes{.least = 2}, Boxes{.soft = true}, Boxes{.overlap = 1, .sigma = 0.3F, .soft = true},
        Boxes{.overlap = 0.7F, .least = 0.4F, .sigma = 0.5F, .most = 60, .soft = true}}) {
    const std::string path = TestDir() + "/boxes.tflite";
    ASSERT_TRUE(tflite::WriteFile(*boxes.Build(), path));
    auto stock = Stock::Open(path);
    ASSERT_TRUE(stock) << stock.error().message;
    auto session = Open(path, *Plugins({"fusebox.vision"}));
    ASSERT_TRUE(session) << session.error().message;
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      const std::vector<float> corners = Corners(seed);
      const Tensors inputs = {Floats({60, 4}, corners), Floats({60}, Noise<float>(60, seed + 9, 0, 1))};
      const auto ours = Invoke(**session, inputs), theirs = (*stock)->Invoke(inputs);
      ASSERT_TRUE(ours) << ours.error().message;
      ASSERT_TRUE(theirs) << theirs.error().message;
      EXPECT_EQ(Difference(*ours, *theirs, 1e-6, 0), "") << "overlap " << boxes.overlap << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
