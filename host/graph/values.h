// SPDX-License-Identifier: Apache-2.0
// Elements of tensors as numbers: read, fill, compare, and seeded inputs. The data may be unaligned.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox {

// Holds every element type without rounding, including i64 and u64.
using ElementNumber = std::complex<long double>;

// True for the types that FillElements writes: not for strings, resources, variants and 8-bit floats.
bool IsNumeric(DType);
bool IsComplex(DType);

// Number of elements; 0 if the type or shape has no known size.
size_t ElementCount(const Tensor& tensor);
// Element `index` in memory order. Not for strings and resources. Packed types: low bits first; 8-bit floats:
// their bits.
ElementNumber ElementAt(const Tensor& tensor, size_t index);
// Reads out.size() elements from `begin` on. Of complex numbers, the real parts.
void ReadDoubles(const Tensor& tensor, size_t begin, std::span<double> out);
// All elements; empty for complex and non-numeric types.
std::vector<double> ToDoubles(const Tensor& tensor);

// Coordinates of an element: "[0,3]".
std::string Coordinates(const Shape& shape, size_t index);

// Sets all elements in memory order: floats to `real(index)`, others to the low bits of `integer(index)`. A
// complex number is two reals. Writes nothing for types that are not numeric.
void FillElements(const Type& type, std::span<std::byte> memory, const std::function<double(size_t)>& real,
                  const std::function<int64_t(size_t)>& integer);

// SplitMix64: equal numbers on every machine. Distributions of the standard library differ.
class SplitMix {
 public:
  explicit SplitMix(uint64_t state) : state_(state) {}
  uint64_t Next();

 private:
  uint64_t state_;
};

// A value of that type, unknown dimensions 1. Depends only on type, seed and input index. Has no data unless
// it is a string: FillSeeded writes it to memory of the session, which may be too small.
//
// The generator is SplitMix64, starting at (seed << 20) + index: per number, state += 0x9e3779b97f4a7c15; the
// mixed state is r.
//   floats      in [-1, 1): r's top 24 bits (f64: 53; f16: 11; bf16: 8) / 2^23 - 1 and so on; complex: real, then imaginary
//   8 and 16 bits  the whole range; 4 and 2 bits too
//   32 and 64 bits 0 to 3, valid as an index
//   bool        alternating, true first;      string: "s0" to "s3"
Result<Tensor> SeededValue(const Type& declared, uint64_t seed, uint64_t index);
void FillSeeded(const Type& type, uint64_t seed, uint64_t index, std::span<std::byte> memory);

struct Tolerance {
  double atol = 1e-5;
  double rtol = 1e-5;
};

struct Difference {
  bool compared = false;  // some pair of tensors was
  // |a - b| <= atol + rtol |b| everywhere; NaNs are equal, and so are equal infinities
  bool within = true;
  double absolute = 0;  // largest |a - b|; infinite if only one is finite
  double relative = 0;  // largest |a - b| / |b|; infinite if b is 0 and a is not
  double atol = 0;      // smallest atol that would pass with this rtol
  std::string where;    // of the largest excess over the tolerance: "[0,3]: 0.25 and 0.5"; or another
                        // difference: "shape ..."
  void Add(const Difference& other);  // keeps the worse of both
};

// Strings are equal or not. Different types or shapes: not within; but f32 compares with f64.
Result<Difference> Compare(const Tensor& a, const Tensor& b, const Tolerance& tolerance);

}  // namespace fusebox
