// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/filter_bank.h"

#include <algorithm>

#include "plugins/signal/fixed_math.h"
#include "plugins/signal/operands.h"

namespace fusebox::signal {
namespace {

constexpr int64_t kMostChannels = 65536;

int64_t Channels(const Node& n) { return Option(n, "num_channels", 1, kMostChannels); }

}  // namespace

void FilterBank::supports(const Node& n) {
  Channels(n);
  RequireTypes(n, {FBX_U32, FBX_I16, FBX_I16, FBX_I16, FBX_I16, FBX_I16});
}

void FilterBank::infer(const Node& n, Infer& out) {
  RequireArity(n, 6, 1);
  const int64_t channels = n.attrs().i64("num_channels");
  if (CountOf(n.in(1)) >= 0) RequireCount(n, 2, CountOf(n.in(1)), CountOf(n.in(1)));
  for (uint32_t i = 3; i < 6; ++i) RequireCount(n, i, channels + 1, INT64_MAX);
  out.set(0, FBX_U64, {channels});
}

// The falling side of a filter lies under the rising side of the next, with the second weights. Filter 0 is
// outside of the result.
void FilterBank::invoke(const Node& n) const {
  const auto* const energies = n.in(0).data<const uint32_t>();
  const int16_t* rising = n.in(1).data<const int16_t>();
  const int16_t* falling = n.in(2).data<const int16_t>();
  uint64_t sum = 0;
  uint64_t next = 0;
  for (int64_t i = 0; i <= n.out(0).count(); ++i) {
    const int64_t from = n.in(3).data<const int16_t>()[i];
    const int64_t weight = n.in(4).data<const int16_t>()[i];
    const int64_t width = n.in(5).data<const int16_t>()[i];
    if (width > 0 && (from < 0 || from + width > n.in(0).count()))
      Fail("filter " + std::to_string(i) + " is outside of the energies", 3);
    if (width > 0 && (weight < 0 || weight + width > n.in(1).count()))
      Fail("filter " + std::to_string(i) + " is outside of the weights", 4);
    for (int64_t k = 0; k < width; ++k) {
      sum += static_cast<uint64_t>(rising[weight + k]) * energies[from + k];
      next += static_cast<uint64_t>(falling[weight + k]) * energies[from + k];
    }
    if (i > 0) n.out(0).data<uint64_t>()[i - 1] = sum;
    sum = next;
    next = 0;
  }
}

void FilterBankSquareRoot::supports(const Node& n) { RequireTypes(n, {FBX_U64, FBX_I32}); }

void FilterBankSquareRoot::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  RequireCount(n, 1, 1, 1);
  out.like(0, n.in(0), FBX_U32);
}

void FilterBankSquareRoot::invoke(const Node& n) const {
  const int32_t bits = *n.in(1).data<const int32_t>();
  if (bits < 0 || bits > 31) Fail("a shift by " + std::to_string(bits) + " bits", 1);
  std::ranges::transform(n.in(0).values<const uint64_t>(), n.out(0).data<uint32_t>(),
                         [&](uint64_t x) { return SquareRoot(x) >> bits; });
}

void SpectralSubtraction::supports(const Node& n) {
  Channels(n);
  for (const std::string_view key : {"smoothing_bits", "spectral_subtraction_bits"}) Option(n, key, 0, 31);
  for (const std::string_view key : {"smoothing", "one_minus_smoothing", "alternate_smoothing",
                                     "alternate_one_minus_smoothing", "min_signal_remaining"})
    Option(n, key, 0, INT32_MAX);
  RequireTypes(n, {FBX_U32});
}

void SpectralSubtraction::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 2);
  const int64_t channels = n.attrs().i64("num_channels");
  RequireCount(n, 0, channels, channels);
  for (uint32_t i = 0; i < 2; ++i) out.set(i, FBX_U32, {channels});
}

SpectralSubtraction::State SpectralSubtraction::prepare(const Node& n, Plan&) const {
  return State(static_cast<size_t>(n.out(0).count()));
}
void SpectralSubtraction::reset(State& noise) { std::ranges::fill(noise, 0); }

void SpectralSubtraction::invoke(const Node& n, State& noise) const {
  const auto option = [&](std::string_view key) { return static_cast<uint32_t>(n.attrs().i64(key)); };
  const uint32_t shift = option("smoothing_bits");
  const uint32_t bits = option("spectral_subtraction_bits");
  const uint32_t remaining = option("min_signal_remaining");
  const uint64_t now[2] = {option("smoothing"), option("alternate_smoothing")};  // for even and odd channels
  const uint64_t before[2] = {option("one_minus_smoothing"), option("alternate_one_minus_smoothing")};
  const bool clamping = n.attrs().b("clamping", false);
  for (size_t i = 0; i < noise.size(); ++i) {
    const uint32_t signal = n.in(0).data<const uint32_t>()[i];
    const uint32_t scaled = signal << shift;
    noise[i] = static_cast<uint32_t>((scaled * now[i % 2] + noise[i] * before[i % 2]) >> bits);
    const uint32_t estimate = std::min(noise[i], scaled);
    if (clamping) noise[i] = estimate;
    const auto least = static_cast<uint32_t>((uint64_t{signal} * remaining) >> bits);
    n.out(0).data<uint32_t>()[i] = std::max((scaled - estimate) >> shift, least);
  }
  std::ranges::copy(noise, n.out(1).data<uint32_t>());
}

void Pcan::supports(const Node& n) {
  Option(n, "snr_shift", 0, 63);
  RequireTypes(n, {FBX_U32, FBX_U32, FBX_I16});
}

void Pcan::infer(const Node& n, Infer& out) {
  RequireArity(n, 3, 1);
  if (const int64_t count = CountOf(n.in(0)); count >= 0) RequireCount(n, 1, count, count);
  RequireCount(n, 2, kGainTableSize, INT64_MAX);
  out.like(0, n.in(0));
}

void Pcan::invoke(const Node& n) const {
  const auto shift = static_cast<int>(n.attrs().i64("snr_shift"));
  for (int64_t i = 0; i < n.in(0).count(); ++i) {
    const auto gain =
        static_cast<uint32_t>(Gain(n.in(1).data<const uint32_t>()[i], n.in(2).data<const int16_t>()));
    const uint64_t product = uint64_t{n.in(0).data<const uint32_t>()[i]} * gain;
    n.out(0).data<uint32_t>()[i] = Shrink(static_cast<uint32_t>(product >> shift));
  }
}

void FilterBankLog::supports(const Node& n) {
  Option(n, "input_correction_bits", 0, 31);
  Option(n, "output_scale", 0, INT32_MAX);
  RequireTypes(n, {FBX_U32});
}

void FilterBankLog::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  out.like(0, n.in(0), FBX_I16);
}

void FilterBankLog::invoke(const Node& n) const {
  const auto bits = static_cast<int>(n.attrs().i64("input_correction_bits"));
  const auto scale = static_cast<uint32_t>(n.attrs().i64("output_scale"));
  std::ranges::transform(n.in(0).values<const uint32_t>(), n.out(0).data<int16_t>(), [&](uint32_t x) {
    const uint32_t scaled = x << bits;
    return static_cast<int16_t>(scaled > 1 ? std::min<uint32_t>(ScaledLog(scaled, scale), INT16_MAX) : 0);
  });
}

}  // namespace fusebox::signal
