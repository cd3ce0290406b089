// SPDX-License-Identifier: Apache-2.0
// The custom op fusebox.gru (gru/spec.h): f32, f64, hybrid (f32 with i8 weights) and integer (i8).
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {

using namespace sdk;

using GruEngine = Engine<GruSpec>;
std::unique_ptr<const GruEngine> MakeEngine(const GruSpec& spec, const Node& node);

struct GruKernel : SequenceKernel<GruSpec> {
  static constexpr std::string_view custom = "fusebox.gru";
  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  using SequenceKernel::SequenceKernel;
};

}  // namespace fusebox::rnn
