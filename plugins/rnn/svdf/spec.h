// SPDX-License-Identifier: Apache-2.0
// What an SVDF node says: a dense layer over the last steps, its weights factored into features and times
// (Nakkiran et al., "Compressing deep neural networks using a rank-constrained topology", Interspeech 2015).
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

#include "plugins/rnn/cell/activation.h"

namespace fusebox::rnn {

enum SvdfOperand : uint32_t { kSvdfInput, kSvdfFeatures, kSvdfTimes, kSvdfBias, kSvdfState, kSvdfOperands };

struct SvdfSpec {
  // Floats: f32 or f64 throughout. Hybrid: f32 with constant weights of i8, times read as floats. Integer: i8
  // input and output, bias i32, state and times both i16 or both i8.
  enum class Form { kFloat, kHybrid, kInteger };

  // Throws Reject for what is not done or does not fit together. Sizes that are not known yet are -1 and fit.
  explicit SvdfSpec(const Node& node);

  Form form = Form::kFloat;
  int64_t batch = -1, inputs = -1, filters = -1, memory = -1, units = -1, rank = 1;
  CellActivation activation = CellActivation::kLinear;
  fbx_dtype dtype = FBX_F32, state_dtype = FBX_F32;
};

}  // namespace fusebox::rnn
