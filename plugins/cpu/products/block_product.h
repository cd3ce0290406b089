// SPDX-License-Identifier: Apache-2.0
// Products of f32 rows, quantized per row at run time, with constant weights of 4 or 8 bits that have a scale
// per block of a row. Sums of a block are exact integers.
#pragma once

#include <memory>

#include <fusebox/weights.hpp>

#include "plugins/cpu/products/quantized_product.h"

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
    int8_t* values;
    int32_t* sums;
    float* scales;
  };
  ByteLayout Layout(const Node& n) const;
  // `packed` begins with the values of all blocks; then come their sums and scales.
  static Block BlockAt(std::byte* packed, size_t blocks, size_t block, const ByteLayout& layout);
  void PackOnce(const Node& n) const;
  size_t PackedBytes(const Node& n) const;
  void Pack(const Node& n, std::byte* to) const;
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
  std::unique_ptr<LatePackedWeights> packed_;
};

}  // namespace fusebox::cpu
