// SPDX-License-Identifier: Apache-2.0
// 8-bit weights packed for products of bytes (plugins/math/gemm/bytes.h), by the first run or for a
// store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/kernel.h"
#include "plugins/rnn/simd/bytes.h"

namespace fusebox::rnn {

using namespace sdk;

// Some rows of an operand. Each has an addend: bias + times * (sum of the row's weights), modulo 2^32.
struct ByteTile {
  static constexpr uint32_t kNoBias = UINT32_MAX;

  uint32_t operand;
  int64_t first, rows;
  uint32_t bias = kNoBias;  // operand; of the same rows
  int32_t times = 1;
};

// Matrices of as many rows and columns each, packed into one, of which each begins with a new panel:
// outputs are [part][rows, padded]; interleaved: [block][part][lane].
class ByteMatrix {
 public:
  ByteMatrix() = default;
  ByteMatrix(const Node& node, std::vector<ByteTile> parts, bool interleaved = false);

  bool used() const { return code_ != nullptr; }
  // At the start of each run.
  void PackOnce(const Node& node) const;

  // Returns the product with rows of signed bytes, without terms and start.
  ByteTask Product(const int8_t* rows, size_t count, size_t stride) const;
  const ByteLayout& layout() const { return layout_; }
  size_t groups() const { return layout_.groups(); }
  size_t part_outputs() const { return layout_.padded() / parts_.size(); }
  // Where row `row` of a part is.
  size_t OutputOf(size_t part, size_t row) const;
  const ByteKernels& code() const { return *code_; }
  const int32_t* addends() const;  // [padded outputs]

 private:
  void Pack(const Node& node, std::byte* to) const;

  const ByteKernels* code_ = nullptr;
  std::vector<ByteTile> parts_;
  bool interleaved_ = false;
  ByteLayout layout_{1, 0, 0};
  std::unique_ptr<LatePackedWeights> packed_;
};

}  // namespace fusebox::rnn
