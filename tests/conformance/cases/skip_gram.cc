// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

Case Of(const char* name, const std::string& text, int64_t size, int64_t skip, bool all,
        const std::vector<std::string>& grams) {
  return {name,
          "SKIP_GRAM",
          {Text({}, {text})},
          {{"ngram_size", size}, {"max_skip_size", skip}, {"include_all_ngrams", all}},
          {Text({static_cast<int64_t>(grams.size())}, grams)}};
}

Case Refused(const char* name, std::vector<Data> operands, int64_t size, int64_t skip, const char* error) {
  return {.name = name,
          .op = "SKIP_GRAM",
          .operands = std::move(operands),
          .attrs = {{"ngram_size", size}, {"max_skip_size", skip}},
          .results = {Text({1}, {""})},
          .error = error};
}

const Suite kSuite("skip_gram", [](Cases& c) {
  const std::string text = "the quick\t brown\n fox ";
  c.push_back(Of("words", text, 1, 0, false, {"the", "quick", "brown", "fox"}));
  c.push_back(Of("pairs", text, 2, 0, false, {"the quick", "quick brown", "brown fox"}));
  c.push_back(Of("pairs with a word left out", text, 2, 1, false,
                 {"the quick", "the brown", "quick brown", "quick fox", "brown fox"}));
  c.push_back(Of("threes with words left out", text, 3, 2, false,
                 {"the quick brown", "the quick fox", "the brown fox", "quick brown fox"}));
  c.push_back(Of("shorter ones too", "a b c", 2, 0, true, {"a b", "a", "b c", "b", "c"}));
  c.push_back(Of("too few words", "a b", 3, 5, true, {}));
  c.push_back(Of("no words", " \n", 1, 0, false, {}));
  c.push_back(Of("one word", "word", 1, 9, true, {"word"}));
  c.push_back(Of("skips beyond the end", "a b", 2, INT32_MAX, false, {"a b"}));
  // One word is left out. All ways to leave out words are 2^40.
  std::string many;
  for (int i = 0; i < 40; ++i) many += "a ";
  c.push_back(
      Of("nearly all words", many, 39, INT32_MAX, false, std::vector(40, many.substr(0, 2 * 39 - 1))));
  c.push_back(Refused("of nothing", {Text({}, {"a"})}, 0, 0, "attr ngram_size: is less than 1"));
  c.push_back(Refused("skips back", {Text({}, {"a"})}, 1, -1, "attr max_skip_size: is negative"));
  c.push_back(Refused("two strings", {Text({2}, {"a", "b"})}, 1, 0, "has 2 strings, expected one"));
  c.push_back({.name = "no strings",
               .op = "SKIP_GRAM",
               .operands = {I32({1}, {1})},
               .attrs = {{"ngram_size", 1}},
               .results = {Text({1}, {""})},
               .refused = "dtype i32 is unsupported"});
});

}  // namespace
}  // namespace fusebox::conformance
