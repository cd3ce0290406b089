// SPDX-License-Identifier: Apache-2.0
// The kernel beside ONNX Runtime's LSTM: an implementation that shares nothing with ours or with TFLite's.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/bench/lstm_engine.h"
#include "tests/testing/peer.h"

namespace fusebox {
namespace {

TEST(LstmPeer, AgreesWithOnnxRuntime) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  std::string why;
  const std::string library = testing::PeerFile("libonnxruntime.so", &why);
  for (const int units : {1, 7, 16, 33, 128}) {
    const bench::LstmProblem problem = bench::RandomProblem(9, units);
    const auto ours = bench::OurEngine(problem);
    const auto theirs = bench::OnnxEngine(problem, library);
    ours->Run();
    theirs->Run();
    const std::vector<float> is = ours->output(), wanted = theirs->output();
    ASSERT_EQ(is.size(), wanted.size());
    for (size_t i = 0; i < is.size(); ++i)
      ASSERT_NEAR(is[i], wanted[i], 2e-6) << units << " units, value " << i;
  }
}

}  // namespace
}  // namespace fusebox
