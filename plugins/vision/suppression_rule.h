// SPDX-License-Identifier: Apache-2.0
// `non_max_suppression_padded_v2` becomes NON_MAX_SUPPRESSION_V4.
//
// Operands: boxes [n,4], scores [n], maximum number of boxes, overlap threshold, score threshold (scalars),
// then options of the body (padding, sorting, tiles), which are ignored. Results: indices, zero-padded, and
// their count. No batch.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::vision {

using namespace sdk;

struct SuppressionRule {
  static constexpr std::string_view id = "fusebox.non_max_suppression";
  static constexpr std::string_view implements = "non_max_suppression_padded_v2";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::vision
