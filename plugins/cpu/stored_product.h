// SPDX-License-Identifier: Apache-2.0
// What quantised convolutions and FULLY_CONNECTED have in common: operands as integers less their zero points, and
// the results made of integer sums. Two forms:
//   bytes    i8 or u8 input, i8, u8 or i4 weights, i32 bias, result of the input's dtype
//   hybrid   f32 input, quantised at each invoke, i8, u8 or i4 weights, f32 bias and result
#pragma once

#include <vector>

#include "plugins/cpu/activation.h"
#include "plugins/cpu/quant.h"

namespace fusebox::cpu {

// Which operands are which, and the dim of the weights that has one scale per output channel.
struct ProductOperands {
  uint32_t input = 0, weights = 1, bias = 2;
  int channel_axis = 0;
};

class StoredProduct {
 public:
  struct State {
    uint32_t input = 0, scales = 0, weights = 0;
  };

  // Whether a node has one of the two forms, rightly or not.
  static bool Takes(const Node& n, ProductOperands o) { return IsQuantised(n, o.weights); }
  // Throws Reject.
  static void Supports(const Node& n, ProductOperands o);
  // For infer: throws where the bias or the weights do not fit the input.
  static void Check(const Node& n, ProductOperands o, int64_t channels);

  StoredProduct() = default;
  // `asymmetric`: a hybrid's input gets a zero point.
  StoredProduct(const Node& n, ProductOperands o, Activation activation, bool asymmetric);

  // `samples`: parts of the input that have a scale each when it is quantised here.
  State Prepare(const Node& n, Plan& plan, int64_t samples) const;
  // The input less its zero point.
  const int16_t* Input(const Node& n, const State& state, int64_t samples) const;
  const int16_t* Weights(const Node& n, const State& state) const;
  // Writes `count` channels of the result from element `at` on, given the sums.
  void Finish(const Node& n, const State& state, int64_t sample, int64_t first_channel, int64_t count,
              const int32_t* sums, int64_t at) const;

 private:
  void ReadScales(const Node& n);
  void Unpack(const Node& n, int16_t* to) const;

  ProductOperands operands_;
  Activation activation_ = Activation::kNone;
  bool hybrid_ = false, asymmetric_ = false;
  int32_t input_zero_ = 0, output_zero_ = 0, lowest_ = 0, highest_ = 0;
  std::vector<int16_t> weights_;    // empty: they are no constant
  std::vector<FixedPoint> scales_;  // bytes: of each channel, or of all
  std::vector<float> weight_scales_;
};

}  // namespace fusebox::cpu
