// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_RNN and RNN (rnn/spec.h): f32, f64 and hybrid (f32 with i8 weights).
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/rnn/spec.h"

namespace fusebox::rnn {

using namespace sdk;

using RnnEngine = Engine<RnnSpec>;
std::unique_ptr<const RnnEngine> MakeEngine(const RnnSpec& spec, const Node& node);

// f32 with constant weights, packed for the vector code (simd/panels.h).
std::unique_ptr<const RnnEngine> MakePackedRnn(const RnnSpec& spec, const Node& node);
// i8 weights (cell/hybrid_product.h).
std::unique_ptr<const RnnEngine> MakeHybridRnn(const Node& node);

struct RnnKernel : SequenceKernel<RnnSpec> {
  static constexpr std::string_view builtin = "UNIDIRECTIONAL_SEQUENCE_RNN";
  using Spec = RnnSpec;
  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  using SequenceKernel::SequenceKernel;
};

// One step.
struct RnnStepKernel : RnnKernel {
  static constexpr std::string_view builtin = "RNN";
  using RnnKernel::RnnKernel;
};

}  // namespace fusebox::rnn
