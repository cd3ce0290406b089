// SPDX-License-Identifier: Apache-2.0
// Random numbers with a seed: those of stock TFLite, call after call.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Options;

// The model's outputs in three calls, ours and stock's.
void ExpectTheSame(std::unique_ptr<Module> module, double apart) {
  const std::string path = TestDir() + "/random.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  auto stock = Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  const auto ours = Open(path, *Plugins());
  ASSERT_TRUE(ours) << ours.error().message;
  for (int call = 0; call < 3; ++call) {
    SCOPED_TRACE(call);
    const auto expected = (*stock)->Invoke({});
    ASSERT_TRUE(expected) << expected.error().message;
    const auto got = Invoke(**ours, {});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(Difference(*got, *expected, apart, apart), "");
  }
}

TEST(RandomPeers, NumbersWithASeedAreStocks) {
  FUSEBOX_NEEDS_STOCK();
  // Of 32 bits: TFLite 2.9 reads no more.
  for (const auto& [seed, seed2] : {std::pair<int64_t, int64_t>{1, 0}, {0, 2}, {-7, 1 << 30}}) {
    for (const Op op : {Op::kRandomUniform, Op::kRandomStandardNormal}) {
      Net net;
      const ValueId dims = net.Const<int32_t>(DType::kI32, {2}, std::vector<int32_t>{3, 7});
      const ValueId y = net.Add(op, {dims}, DType::kF32, {3, 7}, Options("seed", seed, "seed2", seed2));
      ExpectTheSame(net.Take({y}), op == Op::kRandomUniform ? 0 : 1e-6);
    }
  }
}

TEST(RandomPeers, ClassesWithASeedAreStocks) {
  FUSEBOX_NEEDS_STOCK();
  for (const int draws : {1, 6, 100}) {
    for (const DType dtype : {DType::kI32, DType::kI64}) {
      Net net;
      const ValueId logits = net.Const<float>(DType::kF32, {3, 4}, xnnpack_test::Noise<float>(12, 1, -2, 2)),
                    count = net.Const<int32_t>(DType::kI32, {}, std::vector<int32_t>{draws});
      const ValueId y =
          net.Add(Op::kMultinomial, {logits, count}, dtype, {3, draws}, Options("seed", 5, "seed2", 6));
      ExpectTheSame(net.Take({y}), 0);
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
