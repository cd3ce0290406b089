// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/elements/fourier.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace fusebox::cpu {
namespace {

// std::complex products handle infinities, which costs several times the product.
template <class T>
std::complex<T> Times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
void ReverseBits(std::complex<T>* x, int64_t n) {
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
}

}  // namespace

template <class T>
std::vector<std::complex<T>> Roots(int64_t n) {
  std::vector<std::complex<T>> roots;
  for (int64_t k = 0; k < n / 2; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots.emplace_back(static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle)));
  }
  return roots;
}

template <class T>
void Transform(std::complex<T>* x, int64_t n, const std::complex<T>* roots, int64_t m) {
  ReverseBits(x, n);
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t step = m / (2 * half);
    for (int64_t first = 0; first < n; first += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        std::complex<T>& a = x[first + k];
        std::complex<T>& b = x[first + half + k];
        const std::complex<T> turned = Times(b, roots[k * step]);
        b = a - turned;
        a += turned;
      }
    }
  }
}

// With E and O the transforms of the even and odd values, the transform of the pairs is Z = E + i O. Both are
// symmetric, because their inputs are real.
template <class T>
void TransformReal(std::complex<T>* x, int64_t n, const std::complex<T>* roots) {
  if (n == 1) {
    x[0] = {x[0].real(), 0};
    return;
  }
  const int64_t half = n / 2;
  Transform(x, half, roots, n);
  const std::complex<T> first = x[0];
  x[0] = {first.real() + first.imag(), 0};
  x[half] = {first.real() - first.imag(), 0};
  for (int64_t k = 1; 2 * k <= half; ++k) {
    const std::complex<T> z = x[k];
    const std::complex<T> mirrored = std::conj(x[half - k]);
    const std::complex<T> even = (z + mirrored) * T(0.5);
    const std::complex<T> difference = (z - mirrored) * T(0.5);
    const std::complex<T> odd = Times(std::complex<T>(difference.imag(), -difference.real()), roots[k]);
    x[half - k] = std::conj(even - odd);
    x[k] = even + odd;
  }
}

template std::vector<std::complex<float>> Roots(int64_t);
template std::vector<std::complex<double>> Roots(int64_t);
template void Transform(std::complex<float>*, int64_t, const std::complex<float>*, int64_t);
template void Transform(std::complex<double>*, int64_t, const std::complex<double>*, int64_t);
template void TransformReal(std::complex<float>*, int64_t, const std::complex<float>*);
template void TransformReal(std::complex<double>*, int64_t, const std::complex<double>*);

}  // namespace fusebox::cpu
