// SPDX-License-Identifier: Apache-2.0
// `non_max_suppression_padded_v2` becomes NON_MAX_SUPPRESSION_V4.
//
// Operands: boxes [n,4], scores [n], how many stay at most, the overlap and the score that decide (scalars),
// then what says how the body works (padding, sorting, tiles), which the op does without. Results: indices, 0
// behind the last one, and how many there are. No batch.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::vision {

struct SuppressionRule {
  static constexpr std::string_view id = "fusebox.non_max_suppression",
                                    implements = "non_max_suppression_padded_v2";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::vision
