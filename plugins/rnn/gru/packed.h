// SPDX-License-Identifier: Apache-2.0
// A f32 GRU whose weights are packed for the vector code (simd/panels.h), and how its work is laid out over
// time and threads.
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/gru/spec.h"
#include "plugins/rnn/simd/panels.h"

namespace fusebox::rnn {

class PackedGru {
 public:
  // Is this what the vector code does? Weights must have their values.
  static bool Takes(const GruSpec& spec) {
    return spec.dtype == FBX_F32 && !spec.hybrid && spec.constant_weights;
  }

  PackedGru(const GruSpec& spec, const Node& node);

  size_t ChunkSteps(const GruSpec& spec) const;
  size_t ScratchBytes(const GruSpec& spec, size_t chunk_steps) const;

  struct Call {
    const fbx_host* host;
    Sequence sequence;
    float* scratch;
    uint32_t threads;
  };
  // Any number of calls may run at once.
  void Run(const Call& call) const;

 private:
  PackedWeights::Recipe RecipeOf(const Node& node) const;
  void Pack(const Node& node, float* to) const;
  void RunRows(const Call& call, size_t begin, size_t end, bool split) const;
  struct Sums;
  void Step(const Call& call, bool split, const Sums& sums, const StepRows& at) const;

  const PanelCode& code_;
  GruSpec spec_;  // of the node: sizes of weights and options
  size_t inputs_, cells_;
  size_t gate_panels_;  // of one gate
  size_t padded_;       // cells, rounded up to whole panels
  PackedWeights weights_;
  // Packed: input weights and recurrent weights of all gates (without reset_after: of z and r, then of h),
  // both biases.
  const float *input_weights_, *recurrent_, *candidate_, *bias_, *recurrent_bias_;
};

}  // namespace fusebox::rnn
