// SPDX-License-Identifier: Apache-2.0
// A decoder of a language model as litert-torch writes it: the signatures `prefill` (all tokens of a prompt)
// and `decode` (one token) share weights and a KV cache, which is kept in resource variables and updated with
// DYNAMIC_UPDATE_SLICE. Norms and attention are composites (odml.rms_norm,
// odml.scaled_dot_product_attention). Inputs: tokens i32 [1,T], input_pos i32 [T]. Output: logits f32
// [1,1,vocabulary] of the last token.
#pragma once

#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/bench/net.h"

namespace fusebox::bench {

struct DecoderSizes {
  int64_t layers = 8, width = 1024, heads = 16, kv_heads = 4, head = 64, ffn = 2816, vocabulary = 8000;
  int64_t capacity = 1024;  // of the cache, in tokens
  int64_t prompt = 128;     // tokens of prefill; -1: any number
};

// kBytes and kNibbles: i8 and i4, symmetric, one scale per output. The table of tokens is then i8.
enum class DecoderWeights { kFloats, kBytes, kNibbles };
std::string_view Name(DecoderWeights);

// Matrices are [outputs, inputs].
struct DecoderLayer {
  Weights attention_norm, q, k, v, o, ffn_norm, gate, up, down;
};
struct Decoder {
  DecoderSizes sizes;
  Weights table, last_norm, logits;  // of tokens [vocabulary, width], ...
  std::vector<DecoderLayer> layers;

  // Returns the bytes of the matrices that decoding one token reads, with their scales.
  size_t bytes_per_token() const;
};
Decoder MakeDecoder(const DecoderSizes&, DecoderWeights);
std::unique_ptr<Module> ToModule(const Decoder&);

constexpr double kDecoderEpsilon = 1e-6;
// The angle of rotary embedding i of position p: the rotated pairs are x[i] and x[i + head / 2].
inline double RotaryAngle(int64_t position, int64_t i, int64_t head) {
  return static_cast<double>(position) *
         std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head));
}
// Element i of weights of any of the three kinds.
float ValueAt(const Weights&, size_t i);

}  // namespace fusebox::bench
