// SPDX-License-Identifier: Apache-2.0
// A decoder in the engines that decoder_bench compares. Errors are std::runtime_error.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tests/bench/decoder.h"

namespace fusebox::bench {

class DecoderEngine {
 public:
  virtual ~DecoderEngine() = default;
  virtual void Restart() = 0;  // with an empty cache
  // Runs one token, or DecoderSizes::prompt tokens; returns the logits of the last.
  virtual std::span<const float> Run(std::span<const int32_t> tokens) = 0;
};

// MatMul, or MatMulNBits with 8-bit activations; GroupQueryAttention, which updates its cache in place.
std::unique_ptr<DecoderEngine> OnnxDecoder(const Decoder& decoder, const std::string& library, int threads);

}  // namespace fusebox::bench
