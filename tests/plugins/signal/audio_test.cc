// SPDX-License-Identifier: Apache-2.0
// AudioSpectrogram and Mfcc beside their definitions, summed up in f64.
#include <cmath>
#include <numbers>

#include "tests/plugins/signal/node.h"

namespace fusebox::signal_test {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

std::vector<float> Wave(int64_t count) {
  std::vector<float> wave;
  for (int64_t i = 0; i < count; ++i) {
    const auto t = static_cast<double>(i);
    wave.push_back(static_cast<float>(0.5 * std::sin(0.31 * t) + 0.3 * std::cos(1.7 * t + 0.01 * t * t)));
  }
  return wave;
}

// The square of the magnitude at `bin` of the windowed samples.
double Square(const std::vector<float>& x, size_t first, size_t stride, size_t window, size_t length,
              size_t bin) {
  double real = 0, imaginary = 0;
  for (size_t i = 0; i < window; ++i) {
    const double hann = 0.5 - 0.5 * std::cos(kTurn * static_cast<double>(i) / static_cast<double>(window));
    const double phase = kTurn * static_cast<double>(i * bin % length) / static_cast<double>(length);
    real += hann * x[first + i * stride] * std::cos(phase);
    imaginary -= hann * x[first + i * stride] * std::sin(phase);
  }
  return real * real + imaginary * imaginary;
}

TEST(AudioSpectrogram, IsTheTransformUnderAWindow) {
  struct Form {
    int64_t samples, channels, window, stride, length, frames;
  };
  for (const Form& f : {Form{64, 1, 16, 8, 16, 7}, Form{100, 2, 25, 10, 32, 8}, Form{40, 3, 3, 40, 4, 1},
                        Form{33, 1, 32, 1, 32, 2}, Form{400, 1, 400, 160, 512, 1}}) {
    for (const bool squared : {false, true}) {
      const std::vector<float> x = Wave(f.samples * f.channels);
      const auto out =
          RunOp("AudioSpectrogram",
                {{"window_size", f.window}, {"stride", f.stride}, {"magnitude_squared", squared}},
                {Of<float>({f.samples, f.channels}, x)}, {kF32});
      ASSERT_TRUE(out) << out.error().message;
      const int64_t bins = f.length / 2 + 1;
      ASSERT_EQ((*out)[0].type.shape, Shape({f.channels, f.frames, bins}));
      const std::vector<float> y = ValuesOf<float>((*out)[0]);
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t bin = i % static_cast<size_t>(bins), row = i / static_cast<size_t>(bins);
        const auto frames = static_cast<size_t>(f.frames), channels = static_cast<size_t>(f.channels);
        const size_t first = row % frames * static_cast<size_t>(f.stride) * channels + row / frames;
        const double square =
            Square(x, first, channels, static_cast<size_t>(f.window), static_cast<size_t>(f.length), bin);
        const double right = squared ? square : std::sqrt(square);
        ASSERT_NEAR(y[i], right, 1e-6 * std::max(1.0, right)) << "value " << i;
      }
    }
  }
}

TEST(AudioSpectrogram, OfTooFewSamplesIsEmpty) {
  const auto out = RunOp("AudioSpectrogram", {{"window_size", 16}, {"stride", 8}},
                         {Of<float>({15, 2}, std::vector<float>(30))}, {kF32});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ((*out)[0].type.shape, Shape({2, 0, 9}));
}

TEST(AudioSpectrogram, RefusesBrokenNodes) {
  const Tensor x = Of<float>({64, 1}, Wave(64));
  const auto why = [&](const Options& options, const Tensor& tensor) {
    return Refusal("AudioSpectrogram", options, {tensor}, {kF32});
  };
  EXPECT_THAT(why({{"window_size", 1}, {"stride", 1}}, x), HasSubstr("is 1, expected 3 to 65536"));
  EXPECT_THAT(why({{"window_size", 8}}, x), HasSubstr("is missing (attr stride)"));
  EXPECT_THAT(why({{"window_size", 8}, {"stride", 0}}, x), HasSubstr("is 0, expected 1"));
  EXPECT_THAT(why({{"window_size", 8}, {"stride", 4}}, List<float>(Wave(64))),
              HasSubstr("has rank 1, expected 2"));
}

Options MfccOptions(int64_t low, int64_t high, int64_t filters, int64_t coefficients) {
  return {{"lower_frequency_limit", low},
          {"upper_frequency_limit", high},
          {"filterbank_channel_count", filters},
          {"dct_coefficient_count", coefficients}};
}

double Mel(double hertz) { return 1127 * std::log(1 + hertz / 700); }

TEST(Mfcc, IsTheCosineTransformOfLogarithmsUnderTriangles) {
  struct Form {
    int64_t bins, rate, low, high, filters, coefficients;
  };
  for (const Form& f : {Form{257, 16000, 20, 4000, 40, 13}, Form{33, 8000, 0, 4000, 10, 10},
                        Form{129, 44100, 300, 9000, 5, 3}, Form{9, 16000, 100, 500, 6, 2}}) {
    std::vector<float> x = Wave(2 * f.bins);
    for (float& v : x) v = v * v;
    const auto out = RunOp(
        "Mfcc", MfccOptions(f.low, f.high, f.filters, f.coefficients),
        {Of<float>({1, 2, f.bins}, x), Of<int32_t>(Shape::Scalar(), {static_cast<int32_t>(f.rate)})}, {kF32});
    ASSERT_TRUE(out) << out.error().message;
    ASSERT_EQ((*out)[0].type.shape, Shape({1, 2, f.coefficients}));
    const std::vector<float> y = ValuesOf<float>((*out)[0]);
    const double low = Mel(static_cast<double>(f.low)), high = Mel(static_cast<double>(f.high));
    const auto center = [&](int64_t i) {
      return low + (high - low) * static_cast<double>(i) / static_cast<double>(f.filters + 1);
    };
    const double bin = static_cast<double>(f.rate) / 2 / static_cast<double>(f.bins - 1);
    for (int64_t frame = 0; frame < 2; ++frame) {
      std::vector<double> logs;
      for (int64_t filter = 0; filter < f.filters; ++filter) {
        double sum = 0;
        // The first bin is the nearest one above the lower limit, and never the bin of 0 Hz.
        for (auto i = static_cast<int64_t>(1.5 + static_cast<double>(f.low) / bin);
             static_cast<double>(i) * bin <= static_cast<double>(f.high); ++i) {
          const double mel = Mel(static_cast<double>(i) * bin);
          const double rising = (mel - center(filter)) / (center(filter + 1) - center(filter));
          const double falling = (center(filter + 2) - mel) / (center(filter + 2) - center(filter + 1));
          sum += std::max(0.0, std::min(rising, falling)) *
                 std::sqrt(double{x[static_cast<size_t>(frame * f.bins + i)]});
        }
        logs.push_back(std::log(std::max(sum, 1e-12)));
      }
      for (int64_t k = 0; k < f.coefficients; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < f.filters; ++i)
          sum += logs[static_cast<size_t>(i)] *
                 std::cos(std::numbers::pi / static_cast<double>(f.filters) * static_cast<double>(k) *
                          (static_cast<double>(i) + 0.5));
        sum *= std::sqrt(2 / static_cast<double>(f.filters));
        EXPECT_NEAR(y[static_cast<size_t>(frame * f.coefficients + k)], sum,
                    1e-5 * std::max(1.0, std::abs(sum)))
            << "coefficient " << k << " of " << f.filters << " filters";
      }
    }
  }
}

TEST(Mfcc, RefusesBrokenNodes) {
  const Tensor x = Of<float>({1, 1, 33}, Wave(33));
  const auto why = [&](const Options& options, int32_t rate) {
    return Refusal("Mfcc", options, {x, Of<int32_t>(Shape::Scalar(), {rate})}, {kF32});
  };
  EXPECT_THAT(why(MfccOptions(20, 4000, 40, 13), 4000),
              HasSubstr("has no frequencies up to upper_frequency_limit"));
  EXPECT_THAT(why(MfccOptions(20, 4000, 40, 13), 0), HasSubstr("a sample rate of 0"));
  EXPECT_THAT(why(MfccOptions(4000, 20, 40, 13), 16000), HasSubstr("is not above lower_frequency_limit"));
  EXPECT_THAT(why(MfccOptions(20, 4000, 10, 13), 16000), HasSubstr("is 13, expected 1 to 10"));
  EXPECT_THAT(why(MfccOptions(-20, 4000, 40, 13), 16000), HasSubstr("expected 0 to 1e9 Hz"));
}

}  // namespace
}  // namespace fusebox::signal_test
