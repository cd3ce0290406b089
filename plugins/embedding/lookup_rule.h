// SPDX-License-Identifier: Apache-2.0
// `embedding_lookup`, `embedding_matmul` and `odml.embedding_lookup`: table rows by index, for any body (a
// gather, a loop that updates rows in place, a product with one-hot vectors).
//
// Operands: table [V, D...], indices i32 or i64 [N...]; of `odml.embedding_lookup`, sizes (i32 scalars), the
// indices, the table. Result: [N..., D...]. A table of 8 or 4 bits with scales has rank 2 and an f32 result.
// Becomes EMBEDDING_LOOKUP, whose indices are i32 [N], and a RESHAPE for other ranks. An index outside of
// [0, V) is a run-time error. The built-in kernel runs it.
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
