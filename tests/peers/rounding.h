// SPDX-License-Identifier: Apache-2.0
// Compares quantized ops with random shapes, scales and values with stock TFLite: stored values must be
// equal.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::testing {

using Dims = std::vector<int64_t>;

// Random parameters of a trial.
class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int64_t Int(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Flip() { return Int(0, 1) == 1; }
  // Log-uniform.
  float Scale(double low, double high) {
    return static_cast<float>(low * std::pow(high / low, random_() / 4294967296.0));
  }
  template <class T>
  std::vector<T> Values(size_t count, int64_t low, int64_t high) {
    std::vector<T> values(count);
    for (T& v : values) v = static_cast<T>(Int(low, high));
    return values;
  }
  int64_t Zero(DType dtype) {
    return dtype == DType::kI16 ? 0 : dtype == DType::kU8 ? Int(0, 255) : Int(-128, 127);
  }

 private:
  std::mt19937 random_;
};

struct Family {
  std::string name;
  std::function<std::unique_ptr<Module>(Dice&, std::string& what)> build;  // one op with one input
  bool of_zeros = false;                                                   // the input is its zero point
};
void PrintTo(const Family& family, std::ostream* out);

// Runs 100 trials (FUSEBOX_LONG_TESTS: 5000) with our kernels and stock TFLite.
void ExpectStocksValues(const Family& family);

int64_t CountOf(const Dims& dims);
std::string TextOf(const Dims& dims);

}  // namespace fusebox::testing
