// SPDX-License-Identifier: Apache-2.0
// DTLN, a denoiser of two halves with two LSTM layers each: what 8-bit weights cost, beside what they cost in
// the official files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numbers>

#include "host/base/table.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

namespace fs = std::filesystem;
using converter::Quantization;

constexpr char kOfficial[] = "tflite/breizhn__DTLN/pretrained_model/";
constexpr char kSavedModel[] = "savedmodel/breizhn__DTLN/pretrained_model/dtln_saved_model";
constexpr size_t kFrame = 512, kBins = 257, kHop = 128, kFrames = 60;

using Floats1 = std::vector<float>;

// A gliding tone in noise.
Floats1 Sound() {
  const Tensor noise = Random({DType::kF32, Shape{static_cast<int64_t>(kHop * kFrames + kFrame)}}, 9);
  Floats1 out;
  for (const float v : noise.data.As<float>()) {
    const auto t = static_cast<double>(out.size());
    out.push_back(static_cast<float>(0.3 * std::sin(0.05 * t + 20 * std::sin(0.0008 * t))) + 0.05f * v);
  }
  return out;
}

// The spectrum of a frame, or the frame of a spectrum of which the first half is given.
void Transform(const Floats1& frame, Floats1& real, Floats1& imaginary) {
  real.assign(kBins, 0);
  imaginary.assign(kBins, 0);
  for (size_t k = 0; k < kBins; ++k) {
    double re = 0, im = 0;
    for (size_t n = 0; n < kFrame; ++n) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k * n % kFrame) / kFrame;
      re += frame[n] * std::cos(angle);
      im -= frame[n] * std::sin(angle);
    }
    real[k] = static_cast<float>(re);
    imaginary[k] = static_cast<float>(im);
  }
}
Floats1 Back(const Floats1& real, const Floats1& imaginary) {
  Floats1 frame;
  for (size_t n = 0; n < kFrame; ++n) {
    double sum = 0;
    for (size_t k = 0; k < kBins; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k * n % kFrame) / kFrame;
      const double weight = k == 0 || 2 * k == kFrame ? 1 : 2;
      sum += weight * (real[k] * std::cos(angle) - imaginary[k] * std::sin(angle));
    }
    frame.push_back(static_cast<float>(sum / kFrame));
  }
  return frame;
}

// One half as its file has it: the states of its LSTMs go in and come out.
class Half {
 public:
  static Result<Half> Load(const std::string& path, const std::shared_ptr<Registry>& registry) {
    Half out;
    FUSEBOX_ASSIGN(out.session_, Open(path, registry));
    for (const auto& input : out.session_->inputs()) out.inputs_.push_back(Zeros(input.type));
    return out;
  }
  Result<Floats1> Run(const Floats1& values) {
    for (Tensor& input : inputs_)
      if (input.type.shape.rank() < 4) input.data = Buffer::Of<float>(values);
    FUSEBOX_ASSIGN(const Tensors outputs, Invoke(*session_, inputs_));
    Floats1 result;
    for (const Tensor& output : outputs) {
      const auto numbers = output.data.As<float>();
      if (output.type.shape.rank() < 4) result.assign(numbers.begin(), numbers.end());
      else
        for (Tensor& input : inputs_)
          if (input.type.shape.rank() == 4)
            input.data = Buffer::Of<float>(Floats1(numbers.begin(), numbers.end()));
    }
    return result;
  }

 private:
  static Tensor Zeros(const Type& type) {
    return Floats(type.shape, Floats1(static_cast<size_t>(*type.shape.element_count())));
  }
  std::unique_ptr<Session> session_;
  Tensors inputs_;
};

using Frames = std::vector<Floats1>;

// What comes out of both halves, frame by frame.
Result<Frames> OfHalves(const std::string (&paths)[2], const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(Half first, Half::Load(paths[0], registry));
  FUSEBOX_ASSIGN(Half second, Half::Load(paths[1], registry));
  const Floats1 sound = Sound();
  Frames out;
  for (size_t i = 0; i < kFrames; ++i) {
    const Floats1 frame(sound.begin() + static_cast<std::ptrdiff_t>(i * kHop),
                        sound.begin() + static_cast<std::ptrdiff_t>(i * kHop + kFrame));
    Floats1 real, imaginary, size;
    Transform(frame, real, imaginary);
    for (size_t k = 0; k < kBins; ++k) size.push_back(std::hypot(real[k], imaginary[k]));
    FUSEBOX_ASSIGN(const Floats1 mask, first.Run(size));
    for (size_t k = 0; k < kBins; ++k) real[k] *= mask[k], imaginary[k] *= mask[k];
    FUSEBOX_ASSIGN(out.emplace_back(), second.Run(Back(real, imaginary)));
  }
  return out;
}

// The same of a file that holds all of it and keeps its states.
Result<Frames> OfWhole(const std::string& path, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const auto session, Open(path, registry));
  const Floats1 sound = Sound();
  Frames out;
  for (size_t i = 0; i < kFrames; ++i) {
    const Floats1 frame(sound.begin() + static_cast<std::ptrdiff_t>(i * kHop),
                        sound.begin() + static_cast<std::ptrdiff_t>(i * kHop + kFrame));
    FUSEBOX_ASSIGN(const Tensors outputs, Invoke(*session, {Floats({1, kFrame}, frame)}));
    const auto numbers = outputs[0].data.As<float>();
    out.emplace_back(numbers.begin(), numbers.end());
  }
  return out;
}

struct Errors {
  double largest = 0, rms = 0;
};
Errors Between(const Frames& was, const Frames& is) {
  Errors out;
  double squares = 0, count = 0;
  for (size_t i = 0; i < was.size(); ++i) {
    EXPECT_EQ(was[i].size(), is[i].size());
    for (size_t k = 0; k < std::min(was[i].size(), is[i].size()); ++k, ++count) {
      const double error = std::abs(static_cast<double>(was[i][k]) - is[i][k]);
      out.largest = std::max(out.largest, error);
      squares += error * error;
    }
  }
  out.rms = std::sqrt(squares / count);
  return out;
}

Result<std::string> Converted(converter::Conversion conversion, const std::shared_ptr<Registry>& registry,
                              Quantization as, const std::string& name) {
  conversion.options.registry = registry;
  conversion.options.batch = 1;
  conversion.options.quantization = as;
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  const std::string path = TestDir() + "/" + name + ".tflite";
  FUSEBOX_TRY(converted.Write(path));
  return path;
}

TEST(Dtln, EightBitWeightsCostNoMoreThanInTheOfficialFiles) {
  FUSEBOX_NEEDS_MODEL(official, kOfficial);
  FUSEBOX_NEEDS_MODEL(saved_model, kSavedModel);
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  const std::string plain[2] = {official + "/model_1.tflite", official + "/model_2.tflite"};
  const std::string stored[2] = {official + "/model_quant_1.tflite", official + "/model_quant_2.tflite"};
  std::string ours[2];
  for (int i = 0; i < 2; ++i) {
    const auto path = Converted(converter::FromTflite(plain[i]), *registry, Quantization::kDynamic,
                                "half" + std::to_string(i));
    ASSERT_TRUE(path) << path.error().message;
    ours[i] = *path;
  }
  const auto whole =
      Converted(converter::FromSavedModel(saved_model), *registry, Quantization::kNone, "whole");
  const auto hybrid =
      Converted(converter::FromSavedModel(saved_model), *registry, Quantization::kDynamic, "hybrid");
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_TRUE(hybrid) << hybrid.error().message;
  const auto wanted = OfHalves(plain, *registry), theirs = OfHalves(stored, *registry),
             halves = OfHalves(ours, *registry), float_whole = OfWhole(*whole, *registry),
             hybrid_whole = OfWhole(*hybrid, *registry);
  ASSERT_TRUE(wanted && theirs && halves && float_whole && hybrid_whole);
  double loudest = 0;
  for (const Floats1& frame : *wanted)
    for (const float v : frame) loudest = std::max(loudest, std::abs(static_cast<double>(v)));
  const Errors same = Between(*wanted, *float_whole), limit = Between(*wanted, *theirs),
               by_halves = Between(*wanted, *halves), fused = Between(*float_whole, *hybrid_whole);
  Table table({"8-bit weights", "bytes", "of float", "largest error", "rms error"});
  const auto row = [&](const char* name, double bytes, double of, const Errors& errors) {
    table.Row({name, std::to_string(static_cast<int64_t>(bytes)), std::to_string(bytes / of),
               std::to_string(errors.largest), std::to_string(errors.rms)});
  };
  const auto size = [](const std::string& path) { return static_cast<double>(fs::file_size(path)); };
  const double of_halves = size(plain[0]) + size(plain[1]);
  row("official halves", size(stored[0]) + size(stored[1]), of_halves, limit);
  row("halves, dynamic", size(ours[0]) + size(ours[1]), of_halves, by_halves);
  row("SavedModel, dynamic, LSTMs fused", size(*hybrid), size(*whole), fused);
  std::cout << table.Text() << "largest output " << loudest << "; both float forms differ by " << same.largest
            << "\n";
  EXPECT_LE(same.largest, 1e-4 * loudest) << "the official files and the SavedModel are one model";
  EXPECT_LE(by_halves.largest, limit.largest);
  EXPECT_LE(by_halves.rms, limit.rms);
  EXPECT_LE(fused.largest, limit.largest);
  EXPECT_LE(fused.rms, limit.rms);
}

}  // namespace
}  // namespace fusebox::testing
