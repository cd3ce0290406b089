// SPDX-License-Identifier: Apache-2.0
// Products of i16 rows: 64-bit sums that become i16 results.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/common/once.h"
#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/products/quantized_weights.h"

namespace fusebox::cpu {

class QuantizedWords {
 public:
  struct State {
    uint32_t weights = 0;
    uint32_t stored = 0;
  };

  QuantizedWords(const Node& n, const ProductOperands& o, Activation activation);

  State Prepare(const Node& n, Plan& plan) const;
  // Each invoke begins with this: makes the factors, unpacks computed weights.
  void Start(const Node& n, const State& state) const;
  // Returns the weights minus their zero points. The first call unpacks constant weights. Any thread.
  const int16_t* Weights(const Node& n, const State& state) const;
  // Writes `count` channels of the result from element `at` on, from their sums.
  void Finish(const Node& n, int64_t first_channel, int64_t count, const int64_t* sums, int64_t at) const;

 private:
  struct Constants {
    common::Once unpack, scale;
    std::unique_ptr<int16_t[]> weights;  // if constant
    std::vector<FixedPoint> factors;     // per channel or one
  };

  ProductOperands operands_;
  QuantizedRange range_;
  int32_t zero_;  // of the result
  std::unique_ptr<Constants> constants_ = std::make_unique<Constants>();
};

}  // namespace fusebox::cpu
