// SPDX-License-Identifier: Apache-2.0
// Models whose authors published what TensorFlow's own converter made of them: our file computes the same,
// has no more ops and is no larger.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <span>

#include "host/base/table.h"
#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

namespace fs = std::filesystem;

// Below models/: a SavedModel's folder or a Keras file, and its .tflite.
struct Twin {
  const char *source, *twin;
};
constexpr Twin kTwins[] = {
    {"savedmodel/spotify__basic-pitch/basic_pitch/saved_models/icassp_2022/nmp",
     "tflite/spotify__basic-pitch/basic_pitch/saved_models/icassp_2022/nmp.tflite"},
    {"keras/Kazuhito00__hand-gesture-recognition-using-mediapipe/model/keypoint_classifier/"
     "keypoint_classifier.hdf5",
     "tflite/Kazuhito00__hand-gesture-recognition-using-mediapipe/model/keypoint_classifier/"
     "keypoint_classifier.tflite"},
    {"keras/mlcommons__tiny/benchmark/training/image_classification/trained_models/pretrainedResnet.h5",
     "tflite/mlcommons__tiny/benchmark/training/image_classification/trained_models/pretrainedResnet.tflite"},
    {"keras/mahmuudtolba__Human-Action-Recognition/action.h5",
     "tflite/mahmuudtolba__Human-Action-Recognition/action.tflite"},
};

int OpCount(const std::string& path) {
  const auto module = tflite::ReadFile(path);
  if (!module) return -1;
  const auto ops = OpsOf(**module);
  return std::accumulate(ops.begin(), ops.end(), 0, [](int sum, const auto& op) { return sum + op.second; });
}

// Of the outputs of the same name; where the names differ, in order.
Tensors InOrderOf(const Session& wanted, const Session& is, Tensors values) {
  Tensors out;
  for (const auto& output : wanted.outputs())
    for (size_t i = 0; i < is.outputs().size(); ++i)
      if (is.outputs()[i].name == output.name) out.push_back(values[i]);
  return out.size() == values.size() ? out : values;
}

// Empty, or where the two differ, over ten seeds.
std::string Differences(const std::string& ours, const std::string& theirs,
                        const std::shared_ptr<Registry>& registry) {
  const auto a = Open(ours, registry), b = Open(theirs, registry);
  if (!a) return a.error().message;
  if (!b) return b.error().message;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Tensors inputs = RandomInputs(**b, seed);
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    if (!x) return x.error().message;
    if (!y) return y.error().message;
    const std::string difference = Difference(InOrderOf(**b, **a, *x), *y, 1e-5, 0);
    if (!difference.empty()) return "seed " + std::to_string(seed) + ": " + difference;
  }
  return "";
}

// A file with Flex ops, which no host here runs, converted once more; others as they are.
Result<std::string> Runnable(const std::string& path, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(path));
  const auto ops = OpsOf(*module);
  if (std::ranges::none_of(ops, [](const auto& op) { return op.first.starts_with("Flex"); })) return path;
  auto conversion = converter::FromTflite(path);
  conversion.options.registry = registry;
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  const std::string out = TestDir() + "/unflexed.tflite";
  FUSEBOX_TRY(converted.Write(out));
  return out;
}

TEST(Twins, ComputeTheSameWithNoMoreOpsAndBytes) {
  FUSEBOX_NEEDS_MODEL(root, "tflite");
  const fs::path models = fs::path(root).parent_path();
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  Table table({"model", "ops", "twin's", "bytes", "twin's", "outputs"});
  for (const Twin& twin : kTwins) {
    SCOPED_TRACE(twin.source);
    const std::string source = models / twin.source, theirs = models / twin.twin;
    const std::string name = fs::path(twin.source).stem();
    converter::Options options;
    options.registry = *registry;
    const auto written = Convert(source, options, name);
    ASSERT_TRUE(written) << written.error().message;
    const auto runnable = Runnable(theirs, *registry);
    ASSERT_TRUE(runnable) << runnable.error().message;
    const std::string difference = Differences(written->path, *runnable, *registry);
    const int ops = OpCount(written->path), twins = OpCount(theirs);
    const auto size = fs::file_size(written->path), twin_size = fs::file_size(theirs);
    table.Row({name, std::to_string(ops), std::to_string(twins), std::to_string(size),
               std::to_string(twin_size), difference.empty() ? "equal" : difference});
    EXPECT_EQ(difference, "");
    EXPECT_LE(ops, twins);
    EXPECT_LE(size, twin_size);
  }
  std::cout << table.Text()
            << "DTLN's model_1 and model_2 are halves of its SavedModel: the next test. No twins of a float "
               "model: its "
               "model_quant_1 and model_quant_2 and model_ToyCar_quant are quantized, and the Keras file of "
               "model_ToyCar is not among the models (ad01.h5 has its weights, but other biases).\n";
}

using Spectrum = std::vector<std::complex<double>>;

// The Fourier transform of a frame as the authors' program does it outside of the two halves, and the way
// back.
Spectrum Transform(std::span<const float> frame) {
  const size_t n = frame.size();
  Spectrum out(n / 2 + 1);
  for (size_t k = 0; k < out.size(); ++k)
    for (size_t t = 0; t < n; ++t)
      out[k] += double{frame[t]} *
                std::polar(1.0, -2 * M_PI * static_cast<double>(k * t % n) / static_cast<double>(n));
  return out;
}

std::vector<float> TransformBack(const Spectrum& spectrum, size_t n) {
  std::vector<float> out(n);
  for (size_t t = 0; t < n; ++t) {
    double sum = 0;
    for (size_t k = 0; k < spectrum.size(); ++k) {
      const auto turn = std::polar(1.0, 2 * M_PI * static_cast<double>(k * t % n) / static_cast<double>(n));
      sum += (k == 0 || 2 * k == n ? 1 : 2) * (spectrum[k] * turn).real();
    }
    out[t] = static_cast<float>(sum / static_cast<double>(n));
  }
  return out;
}

// A half of the official model, which is given its states and gives them back.
struct Half {
  std::unique_ptr<Session> session;
  Tensor states = Floats({1, 2, 128, 2}, std::vector<float>(512));

  Result<Tensor> Run(Tensor input) {
    FUSEBOX_ASSIGN(Tensors out, Invoke(*session, {std::move(input), states}));
    states = std::move(out.at(1));
    return std::move(out.at(0));
  }
};

Result<Tensor> RunHalves(Half& first, Half& second, const Tensor& frame) {
  Spectrum spectrum = Transform(frame.data.As<float>());
  std::vector<float> magnitudes;
  for (const auto& bin : spectrum) magnitudes.push_back(static_cast<float>(std::abs(bin)));
  FUSEBOX_ASSIGN(const Tensor mask, first.Run(Floats({1, 1, 257}, magnitudes)));
  for (size_t k = 0; k < spectrum.size(); ++k) spectrum[k] *= mask.data.As<float>()[k];
  return second.Run(Floats({1, 1, 512}, TransformBack(spectrum, 512)));
}

// The official files are two halves, with the transform between them in the authors' program; the SavedModel
// is all of it, and keeps its states.
TEST(Twins, HalvesOfDtlnGiveWhatItsSavedModelGives) {
  FUSEBOX_NEEDS_MODEL(halves, "tflite/breizhn__DTLN/pretrained_model");
  FUSEBOX_NEEDS_MODEL(source, "savedmodel/breizhn__DTLN/pretrained_model/dtln_saved_model");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  converter::Options options;
  options.registry = *registry;
  const auto written = Convert(source, options, "dtln");
  ASSERT_TRUE(written) << written.error().message;
  auto whole = Open(written->path, *registry);
  ASSERT_TRUE(whole) << whole.error().message;
  std::vector<Half> parts(2);
  for (size_t i = 0; i < 2; ++i) {
    auto session = Open(halves + "/model_" + std::to_string(i + 1) + ".tflite", *registry);
    ASSERT_TRUE(session) << session.error().message;
    parts[i].session = std::move(*session);
  }
  for (uint64_t seed = 1; seed <= 10;
       ++seed) {  // ten frames in a row: each goes on from the states of the one before
    const Tensor frame = Random({DType::kF32, {1, 512}}, seed);
    const auto ours = Invoke(**whole, {frame});
    ASSERT_TRUE(ours) << ours.error().message;
    const auto theirs = RunHalves(parts[0], parts[1], frame);
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(Difference(*ours, {*theirs}, 1e-5, 0), "") << "frame " << seed;
  }
}

}  // namespace
}  // namespace fusebox::testing
