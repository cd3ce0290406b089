// SPDX-License-Identifier: Apache-2.0
// The cell with weights of 8 bits (cell/hybrid_product.h), asymmetric where asymmetric_quantize_inputs says
// so.
#pragma once

#include <cstdint>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/lstm/reference.h"
#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

class HybridLstm {
 public:
  // Throws Reject for weights that are computed, or that have no single scale.
  static void Check(const LstmSpec& spec, const Node& node);
  HybridLstm(const LstmSpec& spec, const Node& node);

  // Of one call of Run.
  static size_t ScratchBytes(const LstmSpec& spec);
  // As RunReference; of the operands 0, 12-15, 17 and 20-23 are read.
  void Run(const LstmSpec& spec, const LstmBuffers<float>& buffers, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  struct Products;

  bool asymmetric_;
  HybridMatrix matrices_[kProjection + 1];  // by operand
  std::vector<float> peepholes_[3];         // in f32
};

}  // namespace fusebox::rnn
