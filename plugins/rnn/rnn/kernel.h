// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_RNN and RNN, f32, f64 and f32 with weights of 8 bits (rnn/spec.h has operands and
// definition).
//
// f32 with constant weights runs as vector code on weights packed once; everything else as the plain
// definition.
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/rnn/spec.h"

namespace fusebox::rnn {

class PackedRnn;

struct RnnKernel {
  static constexpr std::string_view builtin = "UNIDIRECTIONAL_SEQUENCE_RNN";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // What prepare found out for given shapes.
  struct Shapes {
    RnnSpec spec;
    uint32_t scratch;    // slot; vector code and hybrids only
    size_t chunk_steps;  // vector code: steps whose input projection is held at once
    uint32_t threads;
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit RnnKernel(const Node& node);
  ~RnnKernel();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  struct Hybrid;
  void RunHybrid(const Node& node, const Shapes& shapes) const;

  std::unique_ptr<const PackedRnn> packed_;  // both null: the plain definition
  std::unique_ptr<const Hybrid> hybrid_;
};

// One step.
struct RnnStepKernel : RnnKernel {
  static constexpr std::string_view builtin = "RNN";
  using RnnKernel::RnnKernel;
};

}  // namespace fusebox::rnn
