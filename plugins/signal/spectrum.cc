// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/spectrum.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "plugins/math/simd/fixed_point.h"
#include "plugins/signal/fixed_math.h"
#include "plugins/signal/operands.h"

namespace fusebox::signal {
namespace {

constexpr int64_t kMostLength = 65536;

int64_t FftLength(const Node& n) {
  const int64_t length = Option(n, "fft_length", 4, kMostLength);
  if (!std::has_single_bit(static_cast<uint64_t>(length)))
    throw Reject{"ATTR", "is " + std::to_string(length) + ", expected a power of two", "attr fft_length"};
  return length;
}

void RequireFftType(const Node& n) {
  const fbx_dtype type = n.in_count() > 0 ? n.in(0).dtype() : FBX_I16;
  if (type != FBX_I16 && type != FBX_I32 && type != FBX_F32)
    throw Reject{"DTYPE", std::string("is ") + dtype_name(type) + ", expected i16, i32 or f32",
                 common::Subject(0)};
}

AnyFft FftOf(const Node& n, bool inverse) {
  const int64_t length = FftLength(n);
  if (n.in(0).dtype() == FBX_I16) return RealFft<int16_t>(length, inverse);
  if (n.in(0).dtype() == FBX_I32) return RealFft<int32_t>(length, inverse);
  return RealFft<float>(length, inverse);
}

FftScratch ScratchFor(const AnyFft& fft, Plan& plan) {
  return std::visit(
      [&]<class T>(const RealFft<T>& f) {
        const auto bytes = static_cast<size_t>(f.length()) * sizeof(T);
        return FftScratch{plan.scratch(bytes), plan.scratch(bytes)};
      },
      fft);
}

}  // namespace

void Window::supports(const Node& n) {
  Option(n, "shift", 0, 31);
  RequireTypes(n, {FBX_I16, FBX_I16});
}

void Window::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  const int64_t size = CountOf(n.in(1));
  const int64_t samples = CountOf(n.in(0));
  if (size == 0 || (size > 0 && samples >= 0 && samples % size != 0))
    Fail("has " + std::to_string(size) + " weights for " + std::to_string(samples) + " samples", 1);
  LastDim(n, 0);
  out.like(0, n.in(0));
}

void Window::invoke(const Node& n) const {
  const auto shift = static_cast<int>(n.attrs().i64("shift"));
  const int16_t* in = n.in(0).data<const int16_t>();
  const int16_t* weights = n.in(1).data<const int16_t>();
  const int64_t size = n.in(1).count();
  for (int64_t i = 0; i < n.in(0).count(); ++i)
    n.out(0).data<int16_t>()[i] = math::Saturate<int16_t>((int32_t{in[i]} * weights[i % size]) >> shift);
}

void AutoScale::supports(const Node& n) { RequireTypes(n, {FBX_I16}); }

void AutoScale::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 2);
  out.like(0, n.in(0));
  out.set(1, FBX_I32, {});
}

void AutoScale::invoke(const Node& n) const {
  const auto in = n.in(0).values<const int16_t>();
  int most = 0;
  for (const int16_t x : in) most = std::max(most, std::abs(int{x}));
  const int bits = std::max(0, 15 - BitsOf(static_cast<uint64_t>(most)));
  std::ranges::transform(in, n.out(0).data<int16_t>(),
                         [&](int16_t x) { return static_cast<int16_t>(x * (1 << bits)); });
  *n.out(1).data<int32_t>() = bits;
}

void Rfft::supports(const Node& n) {
  FftLength(n);
  RequireFftType(n);
}

void Rfft::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const int64_t length = n.attrs().i64("fft_length");
  const int64_t samples = LastDim(n, 0);
  if (samples == 0 || samples > length)
    Fail(std::to_string(samples) + " samples for a transform of " + std::to_string(length), 0);
  SetDims(n, out, 0, n.in(0).dtype(), 1, {length + 2});
}

Rfft::Rfft(const Node& n) : fft_(FftOf(n, false)) {}
FftScratch Rfft::prepare(const Node&, Plan& plan) const { return ScratchFor(fft_, plan); }

void Rfft::invoke(const Node& n, const FftScratch& scratch) const {
  std::visit(
      [&]<class T>(const RealFft<T>& fft) {
        const int64_t samples = n.in(0).dim(-1);
        const int64_t length = fft.length();
        T* const padded = n.scratch<T>(scratch.padded);
        for (int64_t row = 0; row < n.in(0).count() / samples; ++row) {
          std::copy_n(n.in(0).data<const T>() + row * samples, samples, padded);
          std::fill_n(padded + samples, length - samples, T(0));
          fft.Forward(padded, n.scratch<Complex<T>>(scratch.work),
                      reinterpret_cast<Complex<T>*>(n.out(0).data<T>() + row * (length + 2)));
        }
      },
      fft_);
}

void Irfft::supports(const Node& n) {
  FftLength(n);
  RequireFftType(n);
}

void Irfft::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const int64_t length = n.attrs().i64("fft_length");
  const int64_t numbers = LastDim(n, 0);
  if (numbers >= 0 && numbers != length + 2)
    Fail(std::to_string(numbers) + " numbers for a transform of " + std::to_string(length), 0);
  SetDims(n, out, 0, n.in(0).dtype(), 1, {length});
}

Irfft::Irfft(const Node& n) : fft_(FftOf(n, true)) {}
FftScratch Irfft::prepare(const Node&, Plan& plan) const { return ScratchFor(fft_, plan); }

void Irfft::invoke(const Node& n, const FftScratch& scratch) const {
  std::visit(
      [&]<class T>(const RealFft<T>& fft) {
        const int64_t length = fft.length();
        for (int64_t row = 0; row < n.out(0).count() / length; ++row) {
          T* const out = n.out(0).data<T>() + row * length;
          fft.Inverse(reinterpret_cast<const Complex<T>*>(n.in(0).data<const T>() + row * (length + 2)),
                      n.scratch<Complex<T>>(scratch.work), out);
          if constexpr (std::is_same_v<T, float>) {
            for (int64_t i = 0; i < length; ++i) out[i] /= static_cast<float>(length);
          }
        }
      },
      fft_);
}

void Energy::supports(const Node& n) {
  Option(n, "start_index", 0, INT32_MAX);
  Option(n, "end_index", 0, INT32_MAX);
  RequireTypes(n, {FBX_I16});
}

void Energy::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const int64_t numbers = LastDim(n, 0);
  const int64_t end = n.attrs().i64("end_index");
  if (n.in(0).rank() > 1) Fail("has rank " + std::to_string(n.in(0).rank()), 0);
  if (numbers % 2 == 1 || (numbers >= 0 && end > numbers / 2))
    Fail("has " + std::to_string(numbers) + " numbers, and end_index is " + std::to_string(end), 0);
  out.set(0, FBX_U32, {numbers < 0 ? -1 : numbers / 2});
}

void Energy::invoke(const Node& n) const {
  const int64_t count = n.out(0).count();
  const int64_t start = n.attrs().i64("start_index");
  const int64_t end = n.attrs().i64("end_index");
  const int16_t* const in = n.in(0).data<const int16_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t real = in[2 * i];
    const int64_t imaginary = in[2 * i + 1];
    n.out(0).data<uint32_t>()[i] =
        i >= start && i < end ? static_cast<uint32_t>(real * real + imaginary * imaginary) : 0;
  }
}

}  // namespace fusebox::signal
