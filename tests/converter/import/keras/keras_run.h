// SPDX-License-Identifier: Apache-2.0
// Writes, converts and runs small Keras models.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/keras_cases.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {

inline std::shared_ptr<Registry> Rnn() {
  static const auto registry = Plugins();
  return *registry;
}

inline Result<Tensors> RunFile(const std::string& file, const Tensors& inputs,
                               converter::Composites composites = converter::Composites::kInline) {
  converter::Options options;
  options.registry = Rnn();
  options.composites = composites;
  FUSEBOX_ASSIGN(const Written written, Convert(file, options, "out"));
  FUSEBOX_ASSIGN(const auto session, Open(written.path, Rnn()));
  return Invoke(*session, inputs);
}

inline Result<Tensors> RunModel(const KerasFixture& model, const Tensors& inputs) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, model);
  return RunFile(file, inputs);
}

inline double Sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

inline std::vector<float> Values(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

inline void ExpectNear(const Result<Tensors>& got, const std::vector<float>& want) {
  ASSERT_TRUE(got) << got.error().message;
  const auto values = Values(got->at(0));
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], 1e-5 + 1e-4 * std::abs(want[i])) << i;
}

}  // namespace fusebox::testing
