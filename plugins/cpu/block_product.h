// SPDX-License-Identifier: Apache-2.0
// Products of f32 rows, quantized per row at run time, with constant weights of 4 or 8 bits that have a scale
// per block of a row. Sums of a block are exact integers.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "plugins/cpu/quantized_product.h"

namespace fusebox::cpu {

class BlockProduct {
 public:
  struct State {
    BytePlan bytes;
    QuantizedProduct::State quantized;
  };

  static bool Takes(const Node& n, ProductOperands o);
  // Throws Reject.
  static void Supports(const Node& n, ProductOperands o);

  BlockProduct() = default;
  BlockProduct(const Node& n, ProductOperands o, Activation activation, bool asymmetric);

  State Prepare(const Node& n, Plan& plan, const ProductShape& shape) const;
  void Run(const Node& n, const State& state, const ProductShape& shape) const;

 private:
  // One block of all channels: packed weights, and by channel their sum and scale.
  struct Block {
    const int8_t* values;
    const int32_t* sums;
    const float* scales;
  };
  // Made by the first run.
  struct Packed {
    std::once_flag pack;
    std::vector<int8_t> values;
    std::vector<int32_t> sums;
    std::vector<float> scales;
  };

  ByteLayout Layout(const ProductShape& shape) const;
  Block BlockAt(size_t block, const ByteLayout& layout) const;
  void Pack(const Node& n, const ProductShape& shape) const;
  void RunPart(const Node& n, const State& state, const ProductShape& shape, const BytePart& part,
               const int8_t* rows) const;
  void AddBlock(const BytePart& part, const Block& block, size_t first, size_t columns, float* y,
                size_t stride) const;
  void Finish(const Node& n, const State& state, const BytePart& part, size_t first, size_t columns, float* y,
              size_t stride) const;

  ProductOperands operands_;
  Activation activation_ = Activation::kNone;
  int64_t block_ = 0;
  QuantizedProduct input_;  // quantizes the rows
  std::unique_ptr<Packed> packed_;
};

}  // namespace fusebox::cpu
