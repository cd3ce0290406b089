// SPDX-License-Identifier: Apache-2.0
// TensorFlow Text composites that become custom ops of the same name (tokenizer.h, ngrams.h, projection.h).
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::text {

using namespace sdk;

// Strings of rank 0, 1 or 2 with 1, 2 or 3 results.
struct TokenizerRule {
  static constexpr std::string_view id = "fusebox.whitespace_tokenizer";
  static constexpr std::string_view implements = "tftext:WhitespaceTokenizer";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// Strings and i64 row splits, one result per operand; attributes width, string_separator, axis,
// reduction_type.
struct NgramsRule {
  static constexpr std::string_view id = "fusebox.ngrams";
  static constexpr std::string_view implements = "tftext:Ngrams";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// Strings and i64 row splits; attributes hash_seed and buckets. The result has one column per seed.
struct ProjectionRule {
  static constexpr std::string_view id = "fusebox.sgnn_projection";
  static constexpr std::string_view implements = "tftext:custom:SgnnProjection";
  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::text
