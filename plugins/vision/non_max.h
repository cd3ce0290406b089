// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION_V4 and NON_MAX_SUPPRESSION_V5: of boxes that overlap, the one with the best score
// stays.
//
// Operands, f32 or all f64 but for the third: boxes [n,4] (any two opposite corners), scores [n], how many
// stay at most (i32), the overlap from which a box goes, the score that it has to be above (scalars); V5:
// sigma, by which a box loses score for what it overlaps (0: none). Results: indices [most] i32, V5: their
// scores [most], and how many there are; 0 behind these.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::vision {

struct NonMaxShape {
  uint32_t heap;  // scratch
};

struct NonMaxSuppressionV4 {
  static constexpr std::string_view builtin = "NON_MAX_SUPPRESSION_V4";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  NonMaxShape prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, NonMaxShape& shape) const;
};

struct NonMaxSuppressionV5 {
  static constexpr std::string_view builtin = "NON_MAX_SUPPRESSION_V5";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  NonMaxShape prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, NonMaxShape& shape) const;
};

}  // namespace fusebox::vision
