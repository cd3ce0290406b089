// SPDX-License-Identifier: Apache-2.0
// In-place Fourier transforms of power-of-two lengths.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace fusebox::cpu {

inline bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// exp(-2 pi i k / n) for k in [0, n / 2).
template <class T>
std::vector<std::complex<T>> Roots(int64_t n);

// X[k] = sum over j of x[j] exp(-2 pi i j k / n). `roots`: Roots(m), where n divides m.
template <class T>
void Transform(std::complex<T>* x, int64_t n, const std::complex<T>* roots, int64_t m);

// x holds n real values as n / 2 pairs, and receives X[0] to X[n / 2]. `roots`: Roots(n).
template <class T>
void TransformReal(std::complex<T>* x, int64_t n, const std::complex<T>* roots);

}  // namespace fusebox::cpu
