// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/fft.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <numbers>
#include <type_traits>

namespace fusebox::signal {
namespace {

// Sums wrap in T, products in the wide type; both are computed unsigned.
template <class T>
struct Fixed {
  using Wide = std::conditional_t<sizeof(T) == 2, int32_t, int64_t>;
  using Bits = std::make_unsigned_t<Wide>;
  static constexpr int kBits = 8 * sizeof(T) - 1;
  static constexpr T kOne = std::numeric_limits<T>::max();

  static T Plus(T a, T b) { return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b)); }
  static T Minus(T a, T b) { return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b)); }
  static Bits Product(T a, T b) { return static_cast<Bits>(static_cast<Wide>(a) * b); }
  static T Rounded(Bits product) {
    return static_cast<T>(static_cast<Wide>(product + (Bits{1} << (kBits - 1))) >> kBits);
  }
  static T Divided(T x, int by) { return Rounded(Product(x, static_cast<T>(kOne / by))); }
  // The sum is computed in int, so that it does not wrap in 16 bits.
  static T HalfOfSum(T a, T b) {
    if constexpr (sizeof(T) == 2) return static_cast<T>((a + b) >> 1);
    else return static_cast<T>(Plus(a, b) >> 1);
  }
  static T HalfOfDifference(T a, T b) {
    if constexpr (sizeof(T) == 2) return static_cast<T>((a - b) >> 1);
    else return static_cast<T>(Minus(a, b) >> 1);
  }
  static T Unit(double x) { return static_cast<T>(std::floor(0.5 + static_cast<double>(kOne) * x)); }
};

template <std::floating_point T>
struct Fixed<T> {
  using Bits = T;
  static T Plus(T a, T b) { return a + b; }
  static T Minus(T a, T b) { return a - b; }
  static T Product(T a, T b) { return a * b; }
  static T Rounded(T product) { return product; }
  static T Divided(T x, int) { return x; }
  static T HalfOfSum(T a, T b) { return (a + b) * T(0.5); }
  static T HalfOfDifference(T a, T b) { return (a - b) * T(0.5); }
  static T Unit(double x) { return static_cast<T>(x); }
};

template <class T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {Fixed<T>::Plus(a.real, b.real), Fixed<T>::Plus(a.imaginary, b.imaginary)};
}
template <class T>
Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {Fixed<T>::Minus(a.real, b.real), Fixed<T>::Minus(a.imaginary, b.imaginary)};
}
template <class T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  using F = Fixed<T>;
  return {F::Rounded(F::Product(a.real, b.real) - F::Product(a.imaginary, b.imaginary)),
          F::Rounded(F::Product(a.real, b.imaginary) + F::Product(a.imaginary, b.real))};
}
template <class T>
Complex<T> Divided(Complex<T> a, int by) {
  return {Fixed<T>::Divided(a.real, by), Fixed<T>::Divided(a.imaginary, by)};
}
template <class T>
Complex<T> Conjugate(Complex<T> a) {
  return {a.real, Fixed<T>::Minus(T(0), a.imaginary)};
}
template <class T>
Complex<T> Turn(double phase) {
  return {Fixed<T>::Unit(std::cos(phase)), Fixed<T>::Unit(std::sin(phase))};
}

}  // namespace

template <class T>
RealFft<T>::RealFft(int64_t length, bool inverse) : inverse_(inverse) {
  const int64_t half = length / 2;
  const double sign = inverse ? 1 : -1;
  for (int64_t i = 0; i < half; ++i)
    twiddles_.push_back(
        Turn<T>(sign * (2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(half))));
  for (int64_t i = 1; i <= half / 2; ++i)
    halves_.push_back(
        Turn<T>(sign * (std::numbers::pi * (static_cast<double>(i) / static_cast<double>(half) + 0.5))));
}

template <class T>
void RealFft<T>::Transform(Complex<T>* out, const Complex<T>* in, size_t step, size_t count) const {
  const size_t radix = count % 4 == 0 ? 4 : 2;
  const size_t rest = count / radix;
  for (size_t k = 0; k < radix; ++k) {
    if (rest == 1) out[k] = in[k * step];
    else Transform(out + k * rest, in + k * step, step * radix, rest);
  }
  radix == 4 ? Radix4(out, step, rest) : Radix2(out, step, rest);
}

template <class T>
void RealFft<T>::Radix2(Complex<T>* out, size_t step, size_t count) const {
  for (size_t k = 0; k < count; ++k) {
    const Complex<T> a = Divided(out[k], 2);
    const Complex<T> b = Divided(out[k + count], 2) * twiddles_[k * step];
    out[k + count] = a - b;
    out[k] = a + b;
  }
}

template <class T>
void RealFft<T>::Radix4(Complex<T>* out, size_t step, size_t count) const {
  for (size_t k = 0; k < count; ++k) {
    Complex<T> part[4];
    for (size_t i = 0; i < 4; ++i) {
      part[i] = Divided(out[k + i * count], 4);
      if (i > 0) part[i] = part[i] * twiddles_[i * k * step];
    }
    const Complex<T> even = part[0] + part[2];
    const Complex<T> difference = part[0] - part[2];
    const Complex<T> odd = part[1] + part[3];
    const Complex<T> side = part[1] - part[3];
    // side, turned by a quarter
    const Complex<T> turned = inverse_ ? Complex<T>{Fixed<T>::Minus(T(0), side.imaginary), side.real}
                                       : Complex<T>{side.imaginary, Fixed<T>::Minus(T(0), side.real)};
    out[k] = even + odd;
    out[k + count] = difference + turned;
    out[k + 2 * count] = even - odd;
    out[k + 3 * count] = difference - turned;
  }
}

template <class T>
void RealFft<T>::Forward(const T* in, Complex<T>* work, Complex<T>* out) const {
  using F = Fixed<T>;
  const size_t half = twiddles_.size();
  Transform(work, reinterpret_cast<const Complex<T>*>(in), 1, half);
  const Complex<T> first = Divided(work[0], 2);
  out[0] = {F::Plus(first.real, first.imaginary), T(0)};
  out[half] = {F::Minus(first.real, first.imaginary), T(0)};
  for (size_t k = 1; k <= half / 2; ++k) {
    const Complex<T> a = Divided(work[k], 2);
    const Complex<T> b = Divided(Conjugate(work[half - k]), 2);
    const Complex<T> sum = a + b;
    const Complex<T> turned = (a - b) * halves_[k - 1];
    out[k] = {F::HalfOfSum(sum.real, turned.real), F::HalfOfSum(sum.imaginary, turned.imaginary)};
    out[half - k] = {F::HalfOfDifference(sum.real, turned.real),
                     F::HalfOfDifference(turned.imaginary, sum.imaginary)};
  }
}

template <class T>
void RealFft<T>::Inverse(const Complex<T>* in, Complex<T>* work, T* out) const {
  using F = Fixed<T>;
  const size_t half = twiddles_.size();
  work[0] = Divided<T>({F::Plus(in[0].real, in[half].real), F::Minus(in[0].real, in[half].real)}, 2);
  for (size_t k = 1; k <= half / 2; ++k) {
    const Complex<T> a = Divided(in[k], 2);
    const Complex<T> b = Divided(Conjugate(in[half - k]), 2);
    const Complex<T> sum = a + b;
    const Complex<T> turned = (a - b) * halves_[k - 1];
    work[k] = sum + turned;
    work[half - k] = Conjugate(sum - turned);
  }
  Transform(reinterpret_cast<Complex<T>*>(out), work, 1, half);
}

template class RealFft<int16_t>;
template class RealFft<int32_t>;
template class RealFft<float>;
template class RealFft<double>;

}  // namespace fusebox::signal
