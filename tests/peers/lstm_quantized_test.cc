// SPDX-License-Identifier: Apache-2.0
// A fused LSTM in integers and with 8-bit weights: how far from its float form, beside what the official file
// shows, and in stock TFLite.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <random>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

namespace fs = std::filesystem;
using converter::Quantization;

constexpr char kMnist[] = "tflite/tensorflow__tflite-micro/tensorflow/lite/micro/examples/mnist_lstm/";
constexpr int kTried = 200, kBesideStock = 50, kCalibrated = 200;
constexpr size_t kSide = 28;
// The official file's probabilities are bytes: one of them is as good as another within half a step.
constexpr double kHalfStep = 0.5 / 256;

// Noise from 0 to 1.
std::vector<float> Noise(uint64_t seed) {
  std::vector<float> values;
  const Tensor random = Random({DType::kF32, Shape{static_cast<int64_t>(kSide * kSide)}}, seed);
  for (const float v : random.data.As<float>()) values.push_back((v + 1) / 2);
  return values;
}

// A line drawn by a winding hand, of the width and size of the digits that the net was trained on.
std::vector<float> Line(uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto between = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random()) / 4294967296.0;
  };
  std::vector<float> picture(kSide * kSide);
  double x = between(6, 22), y = between(6, 22), angle = between(0, 6.28), turn = between(-0.35, 0.35);
  for (auto left = static_cast<int>(between(18, 40)); left > 0; --left) {
    for (size_t i = 0; i < picture.size(); ++i) {
      const double away = std::hypot(static_cast<double>(i % kSide) - x, static_cast<double>(i / kSide) - y);
      picture[i] = std::max(picture[i], static_cast<float>(std::clamp(1.9 - away, 0.0, 1.0)));
    }
    turn = std::clamp(turn + between(-0.12, 0.12), -0.5, 0.5);
    angle += turn;
    x = std::clamp(x + std::cos(angle), 4.0, 24.0);
    y = std::clamp(y + std::sin(angle), 4.0, 24.0);
  }
  return picture;
}

using Drawn = std::vector<float> (*)(uint64_t seed);
Tensor Picture(const Type& type, Drawn drawn, uint64_t seed) {
  return {type, Buffer::Of<float>(drawn(seed))};
}

Result<std::string> Quantize(converter::Conversion conversion, Quantization as,
                             const std::string& calibration, const std::string& tag) {
  conversion.options.quantization = as;
  conversion.options.calibration = calibration;
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  const std::string path = TestDir() + "/" + tag + ".tflite";
  FUSEBOX_TRY(converted.Write(path));
  return path;
}

std::string Calibration(const Tensor& samples) {
  const std::string dir = TestDir() + "/calibration";
  fs::create_directories(dir);
  EXPECT_TRUE(WriteNpy(dir + "/in0.npy", samples));
  return dir;
}
Type Many(Type input) {
  input.shape.dims().insert(input.shape.dims().begin(), kCalibrated);
  return input;
}
// Others than those that are tried.
Tensor Pictures(const Type& input, Drawn drawn) {
  std::vector<float> all;
  for (uint64_t seed = 1; seed <= kCalibrated; ++seed) {
    const auto one = drawn(seed);
    all.insert(all.end(), one.begin(), one.end());
  }
  return {Many(input), Buffer::Of<float>(all)};
}

bool IsOfIntegers(const std::string& path) {
  const auto module = tflite::ReadFile(path);
  if (!module) return false;
  for (const auto& node : (*module)->functions[0]->nodes)
    if (node->is(Op::kUnidirectionalSequenceLstm))
      return (*module)->functions[0]->value(node->operands[19]).type.dtype == DType::kI16;
  return false;
}

double Largest(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (size_t i = 0; i < a.data.As<float>().size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.data.As<float>()[i]) - b.data.As<float>()[i]));
  return largest;
}

// The official file takes and gives bytes: its input has the scale 1/255, its output that of SOFTMAX.
Tensor ToBytes(const Tensor& picture) {
  std::vector<int8_t> bytes;
  for (const float v : picture.data.As<float>())
    bytes.push_back(static_cast<int8_t>(std::clamp(std::round(v * 255) - 128, -128.0f, 127.0f)));
  return {{DType::kI8, picture.type.shape}, Buffer::Of<int8_t>(bytes)};
}
Tensor ToFloats(const Tensor& bytes) {
  std::vector<float> floats;
  for (const int8_t v : bytes.data.As<int8_t>()) floats.push_back(static_cast<float>(v + 128) / 256);
  return {{DType::kF32, bytes.type.shape}, Buffer::Of<float>(floats)};
}

// One file beside the float one. Every call begins from zeros.
struct Beside {
  std::unique_ptr<Session> session;
  std::string path;
  double largest = 0, squares = 0, count = 0, from_stock = 0;

  double rms() const { return std::sqrt(squares / count); }
  Status Try(const Tensor& input, const Tensor& wanted, bool beside_stock) {
    session->ResetState();
    const bool bytes = session->inputs()[0].type.dtype == DType::kI8;
    const Tensors inputs = {bytes ? ToBytes(input) : input};
    FUSEBOX_ASSIGN(Tensors ours, Invoke(*session, inputs));
    if (bytes) ours[0] = ToFloats(ours[0]);
    largest = std::max(largest, Largest(ours[0], wanted));
    for (size_t i = 0; i < wanted.data.As<float>().size(); ++i, ++count)
      squares += std::pow(static_cast<double>(ours[0].data.As<float>()[i]) - wanted.data.As<float>()[i], 2);
    if (!beside_stock) return {};
    // Stock 2.9 cannot reset variables of 16 bits.
    FUSEBOX_ASSIGN(const auto stock, Stock::Open(path));
    FUSEBOX_ASSIGN(Tensors theirs, stock->Invoke(inputs));
    if (bytes) theirs[0] = ToFloats(theirs[0]);
    from_stock = std::max(from_stock, Largest(ours[0], theirs[0]));
    return {};
  }
};

Result<Beside> Load(const std::string& path, const std::shared_ptr<Registry>& registry) {
  Beside out;
  FUSEBOX_ASSIGN(out.session, Open(path, registry));
  out.path = path;
  return out;
}

// Of one kind of pictures: calibrated on some, tried with others, the same for all files.
void IsAsNearAsTheOfficialFile(const std::string& plain, const std::string& official, Drawn drawn,
                               const std::shared_ptr<Registry>& registry) {
  const auto f32 = Open(plain, registry);
  ASSERT_TRUE(f32) << f32.error().message;
  const Type input = (*f32)->inputs()[0].type;
  auto conversion = converter::FromTflite(plain);
  conversion.options.registry = registry;
  const auto eight = Quantize(conversion, Quantization::kInt8, Calibration(Pictures(input, drawn)), "int8");
  const auto dynamic = Quantize(conversion, Quantization::kDynamic, "", "dynamic");
  ASSERT_TRUE(eight) << eight.error().message;
  ASSERT_TRUE(dynamic) << dynamic.error().message;
  EXPECT_TRUE(IsOfIntegers(*eight));
  const std::string paths[] = {official, *eight, *dynamic};
  const char* const names[] = {"official int8", "int8", "dynamic"};
  std::vector<Beside> files;
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(names[i]);
    auto file = Load(paths[i], registry);
    ASSERT_TRUE(file) << file.error().message;
    for (int k = 0; k < kTried; ++k) {
      const Tensor picture = Picture(input, drawn, 1000 + static_cast<uint64_t>(k));
      (*f32)->ResetState();
      const auto wanted = Invoke(**f32, {picture});
      ASSERT_TRUE(wanted) << wanted.error().message;
      const auto tried = file->Try(picture, (*wanted)[0], k < kBesideStock);
      ASSERT_TRUE(tried) << tried.error().message;
    }
    std::cout << names[i] << ": " << fs::file_size(paths[i]) << " bytes of " << fs::file_size(plain)
              << "; probabilities off by at most " << file->largest << ", rms " << file->rms()
              << "; from stock by " << file->from_stock << "\n";
    EXPECT_LE(file->from_stock, i == 2 ? 2e-3 : 1.01 / 256);
    files.push_back(*std::move(file));
  }
  for (int i = 1; i < 3; ++i) {
    EXPECT_LE(files[static_cast<size_t>(i)].largest, files[0].largest + kHalfStep) << names[i];
    EXPECT_LE(files[static_cast<size_t>(i)].rms(), files[0].rms()) << names[i];
  }
}

TEST(QuantizedLstm, IsNearItsFloatFormAsTheOfficialFileIs) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(plain, std::string(kMnist) + "trained_lstm.tflite");
  FUSEBOX_NEEDS_MODEL(official, std::string(kMnist) + "trained_lstm_int8.tflite");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  std::cout << "lines\n";
  IsAsNearAsTheOfficialFile(plain, official, Line, *registry);
  std::cout << "noise\n";
  IsAsNearAsTheOfficialFile(plain, official, Noise, *registry);
}

// Its states are made by the file itself: no reset.
TEST(QuantizedLstm, OfAKerasLayerGivesTheSameAnswerOnEveryCall) {
  FUSEBOX_NEEDS_STOCK();
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  for (const char* name : {"keras_lstm", "lstm_time_major", "lstm_sequences"}) {
    SCOPED_TRACE(name);
    const auto sample = Sample(name);
    ASSERT_TRUE(sample);
    auto conversion = converter::FromSavedModel(*sample);
    conversion.options.registry = *registry;
    conversion.options.batch = 1;
    conversion.options.signatures = {"serving_default"};
    const auto plain = Quantize(conversion, Quantization::kNone, "", std::string(name) + "-f32");
    ASSERT_TRUE(plain) << plain.error().message;
    const auto f32 = Open(*plain, *registry);
    ASSERT_TRUE(f32) << f32.error().message;
    const Type input = (*f32)->inputs()[0].type;
    const auto eight = Quantize(conversion, Quantization::kInt8, Calibration(Random(Many(input), 5)),
                                std::string(name) + "-int8");
    ASSERT_TRUE(eight) << eight.error().message;
    EXPECT_TRUE(IsOfIntegers(*eight));
    const auto ours = Open(*eight, *registry);
    const auto stock = Stock::Open(*eight);
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(stock) << stock.error().message;
    double error = 0, apart = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Tensors inputs = {Random(input, seed)};
      const auto was = Invoke(**f32, inputs), is = Invoke(**ours, inputs), again = Invoke(**ours, inputs),
                 theirs = (*stock)->Invoke(inputs);
      ASSERT_TRUE(was && is && again && theirs);
      EXPECT_EQ(Difference(*is, *again, 0, 0), "");
      error = std::max(error, Largest((*was)[0], (*is)[0]));
      apart = std::max(apart, Largest((*theirs)[0], (*is)[0]));
    }
    std::cout << name << ": off by at most " << error << "; from stock by " << apart << "\n";
    EXPECT_LT(error, 0.03);
    EXPECT_LE(apart, 1e-6);
  }
}

}  // namespace
}  // namespace fusebox::testing
