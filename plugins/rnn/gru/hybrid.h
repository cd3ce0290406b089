// SPDX-License-Identifier: Apache-2.0
// fusebox.gru (gru/spec.h) with weights of 8 bits (cell/hybrid_product.h): input, state and, without
// reset_after, the reset state are quantized before they meet them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/gru/reference.h"
#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {

class HybridGru {
 public:
  HybridGru(const GruSpec& spec, const Node& node);

  size_t ScratchBytes(const GruSpec& spec) const;  // of one call of Run
  // As RunGruReference, of whose operands the weights are not read.
  void Run(const GruSpec& spec, const GruBuffers<float>& buffers, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  struct Scratch;
  void Step(const GruSpec& spec, const GruBuffers<float>& buffers, const float* x, float* state,
            Scratch& scratch) const;

  const PanelCode& code_;
  bool asymmetric_;
  size_t padded_;                                         // cells, rounded up to whole vectors
  HybridMatrix input_[kGruGates], recurrent_[kGruGates];  // by gate
};

}  // namespace fusebox::rnn
