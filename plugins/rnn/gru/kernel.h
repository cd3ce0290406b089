// SPDX-License-Identifier: Apache-2.0
// The custom op fusebox.gru, f32 and f64, and f32 with weights of 8 bits (gru/spec.h has operands, options
// and definition).
//
// f32 with constant weights runs as vector code on weights packed once; everything else as the plain
// definition.
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {

class HybridGru;
class PackedGru;

struct GruKernel {
  static constexpr std::string_view custom = "fusebox.gru";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // What prepare found out for given shapes.
  struct Shapes {
    GruSpec spec;
    uint32_t scratch;    // slot
    size_t chunk_steps;  // vector code: steps whose input projection is held at once
    uint32_t threads;
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit GruKernel(const Node& node);
  ~GruKernel();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  // At most one; none: the plain definition.
  std::unique_ptr<const PackedGru> packed_;
  std::unique_ptr<const HybridGru> hybrid_;
};

}  // namespace fusebox::rnn
