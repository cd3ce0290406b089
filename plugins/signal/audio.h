// SPDX-License-Identifier: Apache-2.0
// TensorFlow's audio ops, which TensorFlow Lite registers as custom ops. Computed in f64, as there.
//
// AudioSpectrogram: samples f32 [n, channels] -> f32 [channels, frames, bins]: magnitudes of the Fourier
//   transform under a periodic Hann window of window_size samples, every `stride` samples. The transform's length
//   is the next power of two, bins = length / 2 + 1. magnitude_squared: their squares.
// Mfcc: squared magnitudes f32 [channels, frames, bins], sample rate i32 [] -> mel-frequency cepstral
// coefficients
//   f32 [channels, frames, dct_coefficient_count]: magnitudes under filterbank_channel_count triangles, equidistant
//   on the mel scale from lower_ to upper_frequency_limit; their logarithms; the discrete cosine transform of those.
#pragma once

#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/signal/fft.h"

namespace fusebox::signal {

using namespace sdk;

class AudioSpectrogram {
 public:
  static constexpr std::string_view custom = "AudioSpectrogram";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  struct State {
    uint32_t samples, work, spectrum;  // scratch
  };
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit AudioSpectrogram(const Node& n);
  State prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, const State& state) const;

 private:
  int64_t stride_;
  bool squared_;
  std::vector<double> window_;
  RealFft<double> fft_;
};

class Mfcc {
 public:
  static constexpr std::string_view custom = "Mfcc";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  struct State {
    uint32_t mels, energies;  // scratch
  };
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Mfcc(const Node& n);
  State prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, const State& state) const;

 private:
  double lower_, upper_;  // Hz
  int64_t filters_, coefficients_;
  std::vector<double> cosines_;  // [coefficients, filters]
};

}  // namespace fusebox::signal
