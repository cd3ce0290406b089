// SPDX-License-Identifier: Apache-2.0
// The checked sizes and options of an SVDF node: a dense layer over the last steps, its weights factored into
// features and times (Nakkiran et al., "Compressing deep neural networks using a rank-constrained topology",
// Interspeech 2015).
//
//   operands  0 input [B,n]; 1 feature weights [f,n]; 2 time weights [f,m]; 3 bias [u], may be absent; 4 state [B,f*m], the
//             features of the last m calls, the newest last, updated in place
//   results   0 [B,u]; 1 the final state, in the memory of operand 4
//
// Filters are units times rank: f = u * rank. Per call, with x the input and S[i] the state of filter i:
//   S[i] = (S[i] without its first, features[i] . x);  out[j] = act(bias[j] + sum over the rank filters i of unit j of times[i] . S[i])
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/common/activation.h"

namespace fusebox::rnn {

using namespace sdk;

using common::Activation;

enum SvdfOperand : uint32_t { kSvdfInput, kSvdfFeatures, kSvdfTimes, kSvdfBias, kSvdfState, kSvdfOperands };

struct SvdfSpec {
  // kFloat: all f32 or all f64. kHybrid: f32 with constant i8 weights; times are dequantized. kInteger: i8
  // input and output, i32 bias, state and times both i16 or both i8.
  enum class Form { kFloat, kHybrid, kInteger };

  // Throws Reject for nodes that are not supported. Unknown sizes are -1.
  explicit SvdfSpec(const Node& node);

  Form form = Form::kFloat;
  int64_t batch = -1;
  int64_t inputs = -1;
  int64_t filters = -1;
  int64_t memory = -1;
  int64_t units = -1;
  int64_t rank = 1;
  Activation activation = Activation::kNone;
  fbx_dtype dtype = FBX_F32;
  fbx_dtype state_dtype = FBX_F32;
};

}  // namespace fusebox::rnn
