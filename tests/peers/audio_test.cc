// SPDX-License-Identifier: Apache-2.0
// AudioSpectrogram and Mfcc of plugins/signal beside stock TFLite, which has both.
#include <gtest/gtest.h>

#include <cmath>

#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

struct AudioNet {
  int64_t samples, channels, window, stride;
  int32_t rate;
  double low, high;
  int64_t filters, coefficients;
};

// Samples -> squared magnitudes -> coefficients; both are results, and magnitudes.
std::unique_ptr<Module> ModuleOf(const AudioNet& net) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId samples = f.AddInput({DType::kF32, {net.samples, net.channels}}, "samples");
  const ValueId rate = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {net.rate});
  const Type cube{DType::kF32, {-1, -1, -1}};
  const auto custom = [&](const char* name, const std::vector<ValueId>& operands, const Attrs& attrs) {
    Node& node = f.AddNode(Op::kCustom, operands, {cube}, attrs);
    node.name = name;
    return node.results[0];
  };
  const auto spectrogram = [&](bool squared) {
    Attrs attrs;
    attrs.Set("window_size", net.window);
    attrs.Set("stride", net.stride);
    attrs.Set("magnitude_squared", squared);
    return custom("AudioSpectrogram", {samples}, attrs);
  };
  Attrs attrs;
  attrs.Set("lower_frequency_limit", net.low);
  attrs.Set("upper_frequency_limit", net.high);
  attrs.Set("filterbank_channel_count", net.filters);
  attrs.Set("dct_coefficient_count", net.coefficients);
  const ValueId squares = spectrogram(true);
  f.outputs = {spectrogram(false), squares, custom("Mfcc", {squares, rate}, attrs)};
  return module;
}

// Stock keeps samples of one channel for the next one, and fails for several. It cuts the fraction of a
// frequency limit, which TensorFlow keeps.
TEST(AudioPeers, ComputesWhatStockComputes) {
  FUSEBOX_NEEDS_STOCK();
  for (const AudioNet& net : {AudioNet{16000, 1, 480, 160, 16000, 20, 4000, 40, 13},
                              AudioNet{1000, 1, 256, 100, 8000, 0, 4000, 20, 20},
                              AudioNet{700, 1, 100, 37, 44100, 300, 12000, 26, 5},
                              AudioNet{64, 1, 16, 16, 16000, 100, 900, 6, 2}}) {
    SCOPED_TRACE(net.window);
    const std::string path = TestDir() + "/audio.tflite";
    ASSERT_TRUE(tflite::WriteFile(*ModuleOf(net), path));
    std::vector<float> wave;
    for (int64_t i = 0; i < net.samples * net.channels; ++i) {
      const auto t = static_cast<double>(i);
      wave.push_back(static_cast<float>(0.6 * std::sin(0.2 * t) + 0.2 * std::cos(1.3 * t + 0.001 * t * t)));
    }
    const std::vector<Tensor> inputs = {
        {{DType::kF32, {net.samples, net.channels}}, Buffer::Of<float>(wave)}};
    auto stock = Stock::Open(path);
    ASSERT_TRUE(stock) << stock.error().message;
    const auto expected = (*stock)->Invoke(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    auto session = Open(path, *Plugins({"fusebox.signal"}));
    ASSERT_TRUE(session) << session.error().message;
    const auto found = Invoke(**session, inputs);
    ASSERT_TRUE(found) << found.error().message;
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ((*found)[i].type, (*expected)[i].type);
      const auto ours = (*found)[i].data.As<float>(), theirs = (*expected)[i].data.As<float>();
      for (size_t k = 0; k < theirs.size(); ++k)
        ASSERT_NEAR(ours[k], theirs[k], 1e-6 * std::max(1.0F, std::abs(theirs[k])))
            << "output " << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
