// SPDX-License-Identifier: Apache-2.0
// tftext:WhitespaceTokenizer: strings are taken apart where Unicode says that white space is.
//
// Operand: strings of rank 0, 1 or 2, UTF-8 (bytes that are none belong to a token). Results: all tokens; for
// rank 1 and 2 row splits i64 that say which belong together: of the rows (rank 2), then of the strings.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::text {

struct WhitespaceTokenizer {
  static constexpr std::string_view custom = "tftext:WhitespaceTokenizer";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  void invoke(const Node& n) const;
};

}  // namespace fusebox::text
