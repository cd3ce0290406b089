// SPDX-License-Identifier: Apache-2.0
// A plain f32 LSTM whose weights are packed for the vector code, and how its work is laid out over time and
// threads.
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/rnn/lstm/spec.h"
#include "plugins/rnn/simd/lstm.h"

namespace fusebox::rnn {

class PackedLstm {
 public:
  // Is this what the vector code does? Weights must have their values.
  static bool Takes(const LstmSpec& spec) {
    return spec.dtype == FBX_F32 && spec.plain() && spec.constant_weights;
  }

  PackedLstm(const LstmSpec& spec, const Node& node);

  // Steps whose projection is held at once, and the bytes that takes.
  size_t ChunkSteps(const LstmSpec& spec) const;
  size_t ScratchBytes(const LstmSpec& spec, size_t chunk_steps) const;

  struct Call {
    const fbx_host* host;
    const LstmSpec& spec;
    const float* x;
    float* output;
    float* h;  // [batch, cells] initial on entry, final on return
    float* c;
    float* z;  // scratch
    size_t chunk_steps;
    uint32_t threads;
  };
  // Any number of calls may run at once.
  void Run(const Call& call) const;

 private:
  PackedWeights::Recipe RecipeOf(const Node& node) const;
  void Pack(const Node& node, float* to) const;
  void PackMatrices(const Node& node, uint32_t first, size_t columns, float* to) const;

  // All steps of the rows [begin, end), with blocks shared out over threads where `split`.
  void RunRows(const Call& call, size_t begin, size_t end, bool split) const;
  template <class F>
  void ForBlocks(const Call& call, const F& f) const;
  void Project(const Call& call, const ProjectionTask& task, bool split) const;
  void Step(const Call& call, const StepTask& task, bool split) const;

  const VectorCode& code_;
  size_t inputs_, cells_, blocks_;
  size_t per_column_;  // floats
  PackedWeights weights_;
  const float *input_weights_, *recurrent_weights_, *bias_;
};

}  // namespace fusebox::rnn
