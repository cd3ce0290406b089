// SPDX-License-Identifier: Apache-2.0
// `embedding_lookup` and `embedding_matmul`: table rows by index, for any body (a gather, a loop that updates
// rows in place, a product with one-hot vectors).
//
// Operands: table [V, D...], indices i32 [N]. Result: [N, D...]. Becomes EMBEDDING_LOOKUP, which has the
// operands in reverse order and requires a table of rank 2 or more. An index outside of [0, V) is a run-time
// error. The built-in kernel runs it.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::embedding {

using namespace sdk;

struct LookupRule {
  static constexpr std::string_view id = "fusebox.embedding_lookup";
  static constexpr std::string_view implements = "embedding_lookup";
  static void match(const Site&);
  static void rewrite(const Site&, Build&);
};

}  // namespace fusebox::embedding
