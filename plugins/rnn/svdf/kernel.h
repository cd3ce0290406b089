// SPDX-License-Identifier: Apache-2.0
// SVDF (svdf/spec.h). Integer arithmetic is bit-exact with TFLite.
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/svdf/spec.h"

namespace fusebox::rnn {

using namespace sdk;

struct SvdfKernel {
  static constexpr std::string_view builtin = "SVDF";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct Shapes {
    SvdfSpec spec;
    uint32_t scratch;  // slot; of 8-bit weights only
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit SvdfKernel(const Node& node);
  ~SvdfKernel();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  struct Hybrid;
  struct Integer;
  std::unique_ptr<const Hybrid> hybrid_;  // both null: float arithmetic
  std::unique_ptr<const Integer> integer_;
};

}  // namespace fusebox::rnn
