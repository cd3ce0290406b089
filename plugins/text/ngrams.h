// SPDX-License-Identifier: Apache-2.0
// tftext:Ngrams: each run of `width` neighbors in a row, joined.
//
// Operands: strings, then, where the rows are ragged, row splits i64 from the outermost on (the strings are a
// list then). Results: as many; without splits [..., n - width + 1], with them a list and the splits of the
// new rows. Attributes: width, string_separator, axis (-1), reduction_type (STRING_JOIN). Rows that are too
// short give nothing.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::text {

class Ngrams {
 public:
  static constexpr std::string_view custom = "tftext:Ngrams";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Ngrams(const Node& n);
  void invoke(const Node& n) const;

 private:
  int64_t width_;
  std::string separator_;
};

}  // namespace fusebox::text
