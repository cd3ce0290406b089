// SPDX-License-Identifier: Apache-2.0
// `embedding_lookup` and `embedding_matmul`: rows of a table by number, whatever the body does to find them
// (a gather, a loop that updates rows in place, a product with one-hot vectors).
//
// Operands: the table [V, D...], the numbers i32 [N]. Result: [N, D...]. Becomes EMBEDDING_LOOKUP, which has
// them the other way round and wants a table of rank 2 or more; a number outside of [0, V) is an error when
// it runs. The built-in kernel runs it.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::embedding {

struct LookupRule {
  static constexpr std::string_view id = "fusebox.embedding_lookup", implements = "embedding_lookup";
  static void match(const Site&);
  static void rewrite(const Site&, Build&);
};

}  // namespace fusebox::embedding
