// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/audio.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "plugins/signal/operands.h"

namespace fusebox::signal {
namespace {

constexpr int64_t kMost = 65536;  // samples of a window, filters, coefficients
constexpr double kLeastEnergy = 1e-12;

int64_t FftLengthOf(int64_t window) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window)));
}

double FrequencyOption(const Node& n, const char* key) {
  const auto value = n.attrs().find_f64(key);
  if (!value || !(*value >= 0 && *value <= 1e9))
    throw Reject{"ATTR", value ? "is " + std::to_string(*value) + ", expected 0 to 1e9 Hz" : "is missing",
                 std::string("attr ") + key};
  return *value;
}

double Mel(double hertz) { return 1127 * std::log1p(hertz / 700); }

}  // namespace

void AudioSpectrogram::supports(const Node& n) {
  Option(n, "window_size", 3, kMost);
  Option(n, "stride", 1, INT32_MAX);
  RequireTypes(n, {FBX_F32});
}

void AudioSpectrogram::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const Tensor in = n.in(0);
  if (in.rank() >= 0 && in.rank() != 2) Fail("has rank " + std::to_string(in.rank()) + ", expected 2", 0);
  const int64_t window = n.attrs().i64("window_size");
  const int64_t stride = n.attrs().i64("stride");
  const int64_t samples = in.rank() < 0 ? -1 : in.dim(0);
  const int64_t bins = FftLengthOf(window) / 2 + 1;
  const int64_t frames = samples < 0 ? -1 : samples < window ? 0 : 1 + (samples - window) / stride;
  out.set(0, FBX_F32, {in.rank() < 0 ? -1 : in.dim(1), frames, bins});
}

AudioSpectrogram::AudioSpectrogram(const Node& n)
    : stride_(n.attrs().i64("stride")),
      squared_(n.attrs().b("magnitude_squared", false)),
      window_(static_cast<size_t>(n.attrs().i64("window_size"))),
      fft_(FftLengthOf(n.attrs().i64("window_size")), false) {
  const double step = 2 * std::numbers::pi / static_cast<double>(window_.size());
  for (size_t i = 0; i < window_.size(); ++i)
    window_[i] = 0.5 - 0.5 * std::cos(step * static_cast<double>(i));
}

AudioSpectrogram::State AudioSpectrogram::prepare(const Node&, Plan& plan) const {
  const auto length = static_cast<size_t>(fft_.length());
  return {plan.scratch(length * sizeof(double)), plan.scratch(length * sizeof(double)),
          plan.scratch((length + 2) * sizeof(double))};
}

void AudioSpectrogram::invoke(const Node& n, const State& state) const {
  const int64_t channels = n.out(0).dim(0);
  const int64_t frames = n.out(0).dim(1);
  const int64_t bins = n.out(0).dim(2);
  auto* const samples = n.scratch<double>(state.samples);
  auto* const spectrum = n.scratch<Complex<double>>(state.spectrum);
  std::fill_n(samples, fft_.length(), 0.0);
  float* to = n.out(0).data<float>();
  for (int64_t row = 0; row < channels * frames; ++row) {
    const float* from = n.in(0).data<const float>() + row % frames * stride_ * channels + row / frames;
    for (size_t i = 0; i < window_.size(); ++i, from += channels) samples[i] = double{*from} * window_[i];
    fft_.Forward(samples, n.scratch<Complex<double>>(state.work), spectrum);
    for (int64_t i = 0; i < bins; ++i) {
      const auto square = static_cast<float>(spectrum[i].real * spectrum[i].real +
                                             spectrum[i].imaginary * spectrum[i].imaginary);
      *to++ = squared_ ? square : std::sqrt(square);
    }
  }
}

void Mfcc::supports(const Node& n) {
  if (FrequencyOption(n, "upper_frequency_limit") <= FrequencyOption(n, "lower_frequency_limit"))
    throw Reject{"ATTR", "is not above lower_frequency_limit", "attr upper_frequency_limit"};
  const int64_t filters = Option(n, "filterbank_channel_count", 1, kMost);
  Option(n, "dct_coefficient_count", 1, std::min<int64_t>(filters, 4096));
  RequireTypes(n, {FBX_F32, FBX_I32});
}

void Mfcc::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  const int rank = n.in(0).rank();
  if (rank >= 0 && rank != 3) Fail("has rank " + std::to_string(rank) + ", expected 3", 0);
  if (rank == 3 && n.in(0).dim(2) >= 0 && n.in(0).dim(2) < 2)
    Fail(std::to_string(n.in(0).dim(2)) + " frequencies", 0);
  RequireCount(n, 1, 1, 1);
  SetDims(n, out, 0, FBX_F32, 1, {n.attrs().i64("dct_coefficient_count")});
}

Mfcc::Mfcc(const Node& n)
    : lower_(n.attrs().f64("lower_frequency_limit")),
      upper_(n.attrs().f64("upper_frequency_limit")),
      filters_(n.attrs().i64("filterbank_channel_count")),
      coefficients_(n.attrs().i64("dct_coefficient_count")) {
  const double count = static_cast<double>(filters_);
  const double norm = std::sqrt(2 / count);
  for (int64_t k = 0; k < coefficients_; ++k)
    for (int64_t i = 0; i < filters_; ++i)
      cosines_.push_back(norm * std::cos(static_cast<double>(k) * (std::numbers::pi / count) *
                                         (static_cast<double>(i) + 0.5)));
}

Mfcc::State Mfcc::prepare(const Node& n, Plan& plan) const {
  return {plan.scratch(static_cast<size_t>(n.in(0).dim(2)) * sizeof(double)),
          plan.scratch(static_cast<size_t>(filters_) * sizeof(double))};
}

void Mfcc::invoke(const Node& n, const State& state) const {
  const int64_t bins = n.in(0).dim(2);
  const int64_t rate = *n.in(1).data<const int32_t>();
  if (rate <= 0) Fail("a sample rate of " + std::to_string(rate), 1);
  const double bin = 0.5 * static_cast<double>(rate) / static_cast<double>(bins - 1);  // Hz
  const auto first = static_cast<int64_t>(1.5 + lower_ / bin);
  const auto last = static_cast<int64_t>(upper_ / bin);
  if (last >= bins)
    Fail("a sample rate of " + std::to_string(rate) + " has no frequencies up to upper_frequency_limit", 1);
  auto* const mels = n.scratch<double>(state.mels);
  auto* const energies = n.scratch<double>(state.energies);
  const double lowest = Mel(lower_);
  const double space = (Mel(upper_) - lowest) / static_cast<double>(filters_ + 1);
  // In distances between the filters' centers: filter i rises from i to i + 1 and falls to i + 2.
  for (int64_t i = first; i <= last; ++i) mels[i] = (Mel(static_cast<double>(i) * bin) - lowest) / space;
  const int64_t frames = n.in(0).count() / bins;
  const float* frame = n.in(0).data<const float>();
  float* to = n.out(0).data<float>();
  for (int64_t row = 0; row < frames; ++row, frame += bins) {
    std::fill_n(energies, filters_, 0.0);
    for (int64_t i = first; i <= last; ++i) {
      const double magnitude = std::sqrt(double{frame[i]});
      const auto side =
          static_cast<int64_t>(std::clamp(std::ceil(mels[i]) - 1, 0.0, static_cast<double>(filters_)));
      const double rising = magnitude * (mels[i] - static_cast<double>(side));
      if (side < filters_) energies[side] += rising;
      if (side > 0) energies[side - 1] += magnitude - rising;
    }
    for (int64_t f = 0; f < filters_; ++f) energies[f] = std::log(std::max(energies[f], kLeastEnergy));
    for (int64_t k = 0; k < coefficients_; ++k) {
      double sum = 0;
      for (int64_t f = 0; f < filters_; ++f)
        sum += cosines_[static_cast<size_t>(k * filters_ + f)] * energies[f];
      *to++ = static_cast<float>(sum);
    }
  }
}

}  // namespace fusebox::signal
