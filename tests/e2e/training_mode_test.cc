// SPDX-License-Identifier: Apache-2.0
// Models saved in training mode: batches are normalized by their own moments, and running averages go on from
// call to call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/graph/values.h"
#include "host/tflite/tflite.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

constexpr double kEpsilon = 0.001, kMomentum = 0.25;
const std::vector<float> kGamma = {1.5, -2}, kBeta = {0.25, 5}, kMean = {0.5, -3}, kVariance = {4, 0.75};

// A batch normalization over [2, 2, 1, 2]; with `assigns` its running moments are written, as Keras'
// training=True does.
Result<std::string> TrainingModel(bool assigns) {
  using namespace models;  // NOLINT(google-build-using-namespace)
  SavedModelBuilder model;
  const auto variable = [&](const char* name, const std::vector<float>& values) {
    return model.AddVariable(name, models::Floats({2}, values), name);
  };
  const VariableRef gamma = variable("gamma", kGamma), beta = variable("beta", kBeta),
                    mean = variable("moving_mean", kMean), variance = variable("moving_variance", kVariance);
  FunctionBuilder& f = model.AddFunction("__inference_train");
  const Ref x = f.Arg("x", tf::DT_FLOAT, {2, 2, 1, 2});
  const auto results =
      f.Ops("FusedBatchNormV3", {x, f.Read(gamma), f.Read(beta), f.Read(mean), f.Read(variance)},
            {{2, 2, 1, 2}, {2}, {2}, {2}, {2}, {0}},
            {{"is_training", true}, {"epsilon", kEpsilon}, {"exponential_avg_factor", kMomentum}});
  if (assigns) {
    f.Assign("AssignVariableOp", mean, results[1]);
    f.Assign("AssignVariableOp", variance, results[2]);
    f.Return({results[0], f.Read(mean), f.Read(variance)});
    model.AddSignature("serving_default", f, {"x"}, {"y", "mean", "variance"});
  } else {
    f.Return({results[0]});
    model.AddSignature("serving_default", f, {"x"}, {"y"});
  }
  const std::string dir = TestDir() + (assigns ? "/assigns" : "/frozen");
  FUSEBOX_TRY(model.Write(dir));
  return dir;
}

// What training computes of four pixels of two channels; the running moments go on.
std::vector<double> Train(const std::vector<float>& x, std::vector<double>& mean,
                          std::vector<double>& variance) {
  std::vector<double> y(x.size());
  for (size_t c = 0; c < 2; ++c) {
    double own = 0, spread = 0;
    for (size_t i = c; i < x.size(); i += 2) own += x[i] / 4.0;
    for (size_t i = c; i < x.size(); i += 2) spread += (x[i] - own) * (x[i] - own) / 4.0;
    for (size_t i = c; i < x.size(); i += 2)
      y[i] = (x[i] - own) * kGamma[c] / std::sqrt(spread + kEpsilon) + kBeta[c];
    mean[c] += kMomentum * (own - mean[c]);
    variance[c] += kMomentum * (spread * 4 / 3 - variance[c]);
  }
  return y;
}

void ExpectNear(const Tensor& got, const std::vector<double>& want) {
  const auto values = ToDoubles(got);
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-5) << "at " << i;
}

const std::vector<float> kBatches[] = {{1, 10, 3, 20, 5, 30, 7, 40}, {-2, 0.5, 4, 0.25, 1, -8, 0, 3}};

Result<Written> Converted(bool assigns, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const std::string dir, TrainingModel(assigns));
  converter::Options options;
  options.registry = registry;
  return Convert(dir, options, "training");
}

TEST(TrainingMode, FrozenStatisticsAreNotRead) {
  const auto registry = Plugins({});
  ASSERT_TRUE(registry) << registry.error().message;
  const auto written = Converted(false, *registry);
  ASSERT_TRUE(written) << written.error().message;
  const auto module = tflite::ReadFile(written->path);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_THAT(OpsOf(**module), Not(Contains(Key("READ_VARIABLE"))));
  EXPECT_THAT(OpsOf(**module), Contains(Key("MEAN")));
  const auto session = Open(written->path, *registry);
  ASSERT_TRUE(session) << session.error().message;
  std::vector<double> mean(2), variance(2);
  for (const auto& batch : kBatches) {
    const auto out = Invoke(**session, {Floats({2, 2, 1, 2}, batch)});
    ASSERT_TRUE(out) << out.error().message;
    ExpectNear((*out)[0], Train(batch, mean, variance));
  }
}

TEST(TrainingMode, RunningMomentsGoOnFromCallToCall) {
  const auto registry = Plugins({});
  ASSERT_TRUE(registry) << registry.error().message;
  const auto written = Converted(true, *registry);
  ASSERT_TRUE(written) << written.error().message;
  const auto session = Open(written->path, *registry);
  ASSERT_TRUE(session) << session.error().message;
  std::map<std::string, size_t> at;
  for (size_t i = 0; i < (*session)->outputs().size(); ++i) at[(*session)->outputs()[i].name] = i;
  std::vector<double> mean(kMean.begin(), kMean.end()), variance(kVariance.begin(), kVariance.end());
  for (const auto& batch : kBatches) {
    const auto out = Invoke(**session, {Floats({2, 2, 1, 2}, batch)});
    ASSERT_TRUE(out) << out.error().message;
    const auto y = Train(batch, mean, variance);
    ASSERT_EQ(out->size(), 3u);
    ExpectNear((*out)[at["y"]], y);
    ExpectNear((*out)[at["mean"]], mean);
    ExpectNear((*out)[at["variance"]], variance);
  }
}

}  // namespace
}  // namespace fusebox::testing
