// SPDX-License-Identifier: Apache-2.0
// Quantizes a function with calibration samples and evaluates it on others.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "host/graph/npy.h"
#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {

struct Eight : Rewritten {
  // Values of an f32 input per sample; default: noise in [-1, 1].
  std::map<size_t, std::function<std::vector<float>(std::mt19937&, size_t count)>> fill;
  std::vector<std::vector<Tensor>> before;  // float outputs per evaluated sample

  static constexpr int kCalibrated = 100, kTried = 20;

  ValueId Dense(ValueId x, int64_t units) {
    const auto& dims = f.value(x).type.shape.dims();
    std::vector<float> weights(static_cast<size_t>(units * dims.back()));
    for (float& w : weights) w = Noise(random_);
    return Op1(Op::kFullyConnected,
               {x, C({units, dims.back()}, weights), C({units}, std::vector<float>(size_t(units)))},
               With({{"keep_num_dims", true}}));
  }
  ValueId Softmax(ValueId x) { return Op1(Op::kSoftmax, {x}, With({{"beta", 1.0}})); }
  ValueId Reshape(ValueId x, std::vector<int32_t> dims) { return Op1(Op::kReshape, {x, Ints(dims)}); }

  std::vector<Tensor> Sample(unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<Tensor> out;
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const Type& type = f.value(f.inputs[i]).type;
      std::vector<float> values(static_cast<size_t>(*type.shape.element_count()));
      if (const auto own = fill.find(i); own != fill.end()) values = own->second(random, values.size());
      else
        for (float& v : values) v = Noise(random);
      out.push_back({type, Buffer::Of<float>(values)});
    }
    return out;
  }
  // Writes the calibration folder.
  std::string Calibration() const {
    const std::string dir =
        ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      std::vector<int64_t> dims = f.value(f.inputs[i]).type.shape.dims();
      dims.insert(dims.begin(), kCalibrated);
      std::vector<float> all;
      for (unsigned s = 0; s < kCalibrated; ++s) {
        const auto values = FloatsOf(Sample(s)[i]);
        all.insert(all.end(), values.begin(), values.end());
      }
      EXPECT_TRUE(WriteNpy(dir + "/in" + std::to_string(i) + ".npy", Floats(dims, all)));
    }
    return dir;
  }
  // Returns "" or the error.
  std::string Quantize(std::vector<ValueId> outputs, Quantization as = Quantization::kInt8) {
    f.outputs = std::move(outputs);
    Sign(f);
    for (unsigned s = 0; s < kTried; ++s) before.push_back(Compute("main", Sample(1000 + s)));
    options.quantization = as;
    options.calibration = Calibration();
    return Run(QuantizeWeights);
  }
  // Signal-to-noise ratio of an output in dB, on samples other than the calibration data.
  double Snr(size_t output = 0) {
    double signal = 0, noise = 0;
    for (unsigned s = 0; s < kTried; ++s) {
      const auto was = FloatsOf(before[s][output]), is = FloatsOf(Compute("main", Sample(1000 + s))[output]);
      for (size_t i = 0; i < was.size(); ++i) {
        signal += static_cast<double>(was[i]) * was[i];
        noise += std::pow(static_cast<double>(was[i]) - is[i], 2);
      }
    }
    return noise > 0 ? 10 * std::log10(signal / noise) : 200;
  }
  const Quant& QuantOf(ValueId v) const { return *f.value(v).quant; }

 private:
  static float Noise(std::mt19937& random) { return std::uniform_real_distribution<float>(-1, 1)(random); }
  std::mt19937 random_{7};
};

}  // namespace fusebox::converter
