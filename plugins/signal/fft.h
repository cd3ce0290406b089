// SPDX-License-Identifier: Apache-2.0
// Fourier transform of real numbers, bit-exact with the fixed-point forms of KISS FFT (which tflite-micro
// uses): decimation in time, radix 4 and then 2, each stage divides by its radix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusebox::signal {

template <class T>
struct Complex {
  T real, imaginary;
};

// T is int16_t, int32_t (scaled by 1 / length), float or double (not scaled).
template <class T>
class RealFft {
 public:
  // length: a power of two, 4 or more.
  RealFft(int64_t length, bool inverse);

  int64_t length() const { return 2 * static_cast<int64_t>(twiddles_.size()); }
  // `work` has length / 2 elements.
  void Forward(const T* in, Complex<T>* work, Complex<T>* out) const;  // length / 2 + 1 results
  void Inverse(const Complex<T>* in, Complex<T>* work, T* out) const;

 private:
  void Transform(Complex<T>* out, const Complex<T>* in, size_t step, size_t count) const;
  void Radix2(Complex<T>* out, size_t step, size_t count) const;
  void Radix4(Complex<T>* out, size_t step, size_t count) const;

  bool inverse_;
  std::vector<Complex<T>> twiddles_, halves_;  // of the complex transform; of the step to real numbers
};

extern template class RealFft<int16_t>;
extern template class RealFft<int32_t>;
extern template class RealFft<float>;
extern template class RealFft<double>;

}  // namespace fusebox::signal
