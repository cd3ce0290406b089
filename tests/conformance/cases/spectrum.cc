// SPDX-License-Identifier: Apache-2.0
// RFFT2D held against the sum that defines it; COMPLEX_ABS, REAL, IMAG.
#include <cmath>
#include <complex>
#include <numbers>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

template <class T>
Data Complex(std::vector<int64_t> dims, const std::vector<std::complex<double>>& values) {
  Data d{sizeof(T) == 8 ? FBX_COMPLEX128 : FBX_COMPLEX64, std::move(dims), {}};
  for (const auto& v : values) {
    const T parts[] = {static_cast<T>(v.real()), static_cast<T>(v.imag())};
    const auto* bytes = reinterpret_cast<const uint8_t*>(parts);
    d.bytes.insert(d.bytes.end(), bytes, bytes + sizeof parts);
  }
  return d;
}

// Of `images` images; what the lengths cut off or fill up included.
template <class T>
void Spectrum(Cases& c, const char* name, int64_t images, int64_t height, int64_t width, int64_t rows,
              int64_t columns) {
  const Data x = Random<T>({images, height, width}, 21);
  const std::vector<T> values = As<T>(x);
  std::vector<std::complex<double>> y;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t u = 0; u < rows; ++u) {
      for (int64_t v = 0; v <= columns / 2; ++v) {
        std::complex<double> sum;
        for (int64_t j = 0; j < std::min(rows, height); ++j) {
          for (int64_t k = 0; k < std::min(columns, width); ++k) {
            const double turns = static_cast<double>(u * j) / static_cast<double>(rows) +
                                 static_cast<double>(v * k) / static_cast<double>(columns);
            sum += double{values[static_cast<size_t>((image * height + j) * width + k)]} *
                   std::polar(1.0, -2 * std::numbers::pi * turns);
          }
        }
        y.push_back(sum);
      }
    }
  }
  c.push_back({.name = name,
               .op = "RFFT2D",
               .operands = {x, I32({2}, {static_cast<int32_t>(rows), static_cast<int32_t>(columns)})},
               .results = {Complex<T>({images, rows, columns / 2 + 1}, y)},
               .atol = sizeof(T) == 8 ? 1e-12 : 2e-5,
               .also_f64 = false});
}

const Suite kSpectrum("spectrum", [](Cases& c) {
  Spectrum<float>(c, "frames", 3, 1, 64, 1, 64);
  Spectrum<float>(c, "a frame of two", 1, 1, 2, 1, 2);
  Spectrum<float>(c, "a frame of one", 2, 1, 1, 1, 1);
  Spectrum<float>(c, "images", 2, 8, 16, 8, 16);
  Spectrum<float>(c, "columns alone", 1, 8, 1, 8, 1);
  Spectrum<float>(c, "cut and filled up", 2, 5, 20, 8, 16);
  Spectrum<float>(c, "filled up and cut", 1, 9, 11, 4, 32);
  Spectrum<double>(c, "f64", 1, 4, 32, 4, 32);
  c.push_back({.name = "no images",
               .op = "RFFT2D",
               .operands = {F32({0, 2, 4}, {0}), I32({2}, {2, 4})},
               .results = {Complex<float>({0, 2, 3}, {})},
               .also_f64 = false});
  c.push_back({.name = "a length that is no power of two",
               .op = "RFFT2D",
               .operands = {F32({1, 6}, {1}), I32({2}, {1, 6})},
               .error = "a length of 6",
               .also_f64 = false});
  c.push_back({.name = "one length",
               .op = "RFFT2D",
               .operands = {F32({1, 4}, {1}), I32({1}, {4})},
               .error = "expected two lengths",
               .also_f64 = false});
  const std::vector<std::complex<double>> z = {{3, 4}, {-5, 12}, {0, 0}, {-2, 0}, {0, -7}};
  for (const auto& [op, values] :
       {std::pair<const char*, std::vector<float>>{"COMPLEX_ABS", {5, 13, 0, 2, 7}},
        {"REAL", {3, -5, 0, -2, 0}},
        {"IMAG", {4, 12, 0, 0, -7}}}) {
    c.push_back({.name = "complex numbers",
                 .op = op,
                 .operands = {Complex<float>({5}, z)},
                 .results = {F32({5}, values)},
                 .rtol = 1e-6,
                 .also_f64 = false});
    c.push_back({.name = "wide complex numbers",
                 .op = op,
                 .operands = {Complex<double>({5}, z)},
                 .results = {F64({5}, {values.begin(), values.end()})},
                 .rtol = 1e-12,
                 .also_f64 = false});
    c.push_back({.name = "of a real number",
                 .op = op,
                 .operands = {F32({1}, {1})},
                 .refused = "dtype f32",
                 .also_f64 = false});
  }
});

}  // namespace
}  // namespace fusebox::conformance
