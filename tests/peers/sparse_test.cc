// SPDX-License-Identifier: Apache-2.0
// Constants stored without most of their zeros, beside stock TFLite, which unpacks them with DENSIFY.
#include <gtest/gtest.h>

#include <fstream>

#include "host/tflite/tflite.h"
#include "tests/host/tflite/sparse_file.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

std::string DenseFile() {
  xnnpack_test::Net net;
  const ValueId x = net.Input(DType::kF32, {2, 32});
  std::vector<float> weights = xnnpack_test::Noise<float>(16 * 32, 1, -1, 1);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = i / 4 % 3 == 0 ? weights[i] : 0;
  const ValueId w = net.Const(DType::kF32, {16, 32}, weights);
  net.function().value(w).name = "w";
  const ValueId y = net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {2, 16});
  const auto bytes = tflite::Write(*net.Take({y}));
  EXPECT_TRUE(bytes);
  return bytes ? *bytes : std::string();
}

TEST(SparsePeers, WeightsThatAreUnpackedGiveWhatStockGives) {
  FUSEBOX_NEEDS_STOCK();
  const std::string dense = DenseFile();
  const std::vector<std::pair<const char*, SparseForm>> forms = {
      {"rows", {.order = {0, 1}, .sparse = {false, true}}},
      {"rows of bytes", {.order = {0, 1}, .sparse = {false, true}, .index_bits = 8}},
      {"columns", {.order = {1, 0}, .sparse = {false, true}}},
      {"blocks", {.order = {0, 1, 2}, .block_of = {1}, .block_size = {4}, .sparse = {false, true, false}}},
      {"squares",
       {.order = {0, 1, 2, 3},
        .block_of = {0, 1},
        .block_size = {2, 2},
        .sparse = {false, true, false, false}}}};
  for (const auto& [name, form] : forms) {
    SCOPED_TRACE(name);
    const std::string path = TestDir() + "/sparse.tflite";
    std::ofstream(path, std::ios::binary) << WithSparse(dense, "w", form, true);
    auto stock = Stock::Open(path);
    auto session = Open(path, *Plugins());
    ASSERT_TRUE(stock) << stock.error().message;
    ASSERT_TRUE(session) << session.error().message;
    const Tensors inputs = RandomInputs(**session, 5);
    const auto ours = Invoke(**session, inputs), theirs = (*stock)->Invoke(inputs);
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(Difference(*ours, *theirs, 1e-5, 1e-5), "");
  }
}

}  // namespace
}  // namespace fusebox::testing
