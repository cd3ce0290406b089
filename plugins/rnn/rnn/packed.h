// SPDX-License-Identifier: Apache-2.0
// A f32 RNN whose weights are packed for the vector code (simd/panels.h).
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/rnn/spec.h"
#include "plugins/rnn/simd/panels.h"

namespace fusebox::rnn {

class PackedRnn {
 public:
  // Is this what the vector code does? Weights must have their values.
  static bool Takes(const RnnSpec& spec) { return spec.dtype == FBX_F32 && spec.constant_weights; }

  PackedRnn(const RnnSpec& spec, const Node& node);

  size_t ChunkSteps(const RnnSpec& spec) const;
  size_t ScratchBytes(const RnnSpec& spec, size_t chunk_steps) const;

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

  const PanelCode& code_;
  CellActivation activation_;
  size_t inputs_, cells_, panels_, padded_;  // padded: cells, rounded up to whole panels
  PackedWeights weights_;
  const float *input_weights_, *recurrent_, *bias_;
};

}  // namespace fusebox::rnn
