// SPDX-License-Identifier: Apache-2.0
// Joining, cutting, measuring, hashing, and regular expressions.
#include "plugins/strings/edit.h"

#include "tests/plugins/strings/run_all.h"

namespace fusebox::strings_test {
namespace {

using strings::Joined;
using strings::JoinedAxes;
using strings::Match;
using strings::Replaced;
using strings::Substring;
using Hash = strings::Measured<strings::HashBucket>;
using StrongHash = strings::Measured<strings::StrongHashBucket>;
using Length = strings::Measured<strings::Length>;
using Replace = strings::Mapped<strings::StaticReplaced>;
using FullMatch = strings::Measured<strings::StaticMatch>;

const std::string kSmile = "\xF0\x9F\x98\x8A";

TEST(StringJoin, RepeatsScalars) {
  RunAll<Joined>({
      // The examples of tf.strings.join.
      {.name = "two strings",
       .operands = {Text({}, {"hello"}), Text({}, {"world"})},
       .results = {Text({}, {"helloworld"})}},
      {.name = "with a separator",
       .operands = {Text({}, {"hello"}), Text({}, {"world"})},
       .attrs = {{"separator", " "}},
       .results = {Text({}, {"hello world"})}},
      {.name = "a scalar and a matrix",
       .operands = {Text({}, {"x"}), Text({2, 1}, {"a", "b"}), Text({2, 1}, {"c", ""})},
       .attrs = {{"separator", "-"}},
       .results = {Text({2, 1}, {"x-a-c", "x-b-"})}},
      {.name = "one operand", .operands = {Text({1}, {"a"})}, .results = {Text({1}, {"a"})}},
      {.name = "no strings", .operands = {Text({0}, {}), Text({}, {"a"})}, .results = {Text({0}, {})}},
      {.name = "two shapes",
       .operands = {Text({2}, {"a", "b"}), Text({1}, {"c"})},
       .error = "expected [2] or a scalar"},
      {.name = "no operands", .refused = "has no operands"},
  });
}

TEST(Substr, FollowsTheDocumentedExamples) {
  const Data numbers = Text({3}, {"Hello", "World", "!ab"});
  RunAll<Substring>({
      {.name = "one position",
       .operands = {Text({2}, {"Hello", "World"}), I32({}, {1}), I32({}, {3})},
       .results = {Text({2}, {"ell", "orl"})}},
      {.name = "each its own",
       .operands = {Text({2, 2}, {"ten", "eleven", "twelve", "thirteen"}), I64({2, 2}, {0, 1, 2, 3}),
                    I64({2, 2}, {2, 3, 4, 5})},
       .results = {Text({2, 2}, {"te", "lev", "elve", "rteen"})}},
      {.name = "columns",
       .operands = {Text({3, 2}, {"ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"}),
                    I32({2}, {1, 2}), I32({2}, {1, 2})},
       .results = {Text({3, 2}, {"e", "ev", "w", "ir", "o", "ft"})}},
      {.name = "one string",
       .operands = {Text({}, {"thirteen"}), I32({3}, {1, 5, 7}), I32({3}, {3, 2, 1})},
       .results = {Text({3}, {"hir", "ee", "n"})}},
      {.name = "from the end, to the end",
       .operands = {Text({4}, {"abc", "abc", "abc", "abc"}), I32({4}, {-2, 3, -3, 1}),
                    I32({4}, {1, 5, 99, -1})},
       .results = {Text({4}, {"b", "", "abc", "bc"})}},
      {.name = "outside",
       .operands = {Text({}, {"abc"}), I32({}, {4}), I32({}, {1})},
       .error = "position 4 is outside of a string of 3 units"},
      {.name = "before", .operands = {Text({}, {""}), I32({}, {-1}), I32({}, {1})}, .error = "position -1"},
      {.name = "shapes that do not fit",
       .operands = {numbers, I32({2}, {0, 0}), I32({2}, {1, 1})},
       .error = "sizes 3 and 2 of its operands cannot be broadcast"},
      {.name = "floats",
       .operands = {numbers, F32({}, {0}), I32({}, {1})},
       .refused = "is f32, expected i32 or i64"},
  });
}

TEST(Substr, CountsCharacters) {
  RunAll<Substring>({
      {.name = "characters",
       .operands = {Text({3}, {"\xC3\xA9" + kSmile + "a", "\xC3\xA9" + kSmile + "a",
                               "\x80\x80"
                               "b"}),
                    I32({3}, {1, -1, 0}), I32({3}, {1, 9, 1})},
       .attrs = {{"unit", "UTF8_CHAR"}},
       .results = {Text({3}, {kSmile, "a", "\x80\x80"})}},
      {.name = "outside",
       .operands = {Text({}, {kSmile}), I32({}, {2}), I32({}, {1})},
       .attrs = {{"unit", "UTF8_CHAR"}},
       .error = "position 2 is outside of a string of 1 units"},
      {.name = "another unit",
       .operands = {Text({}, {"a"}), I32({}, {0}), I32({}, {1})},
       .attrs = {{"unit", "WORD"}},
       .refused = "is \"WORD\""},
  });
}

TEST(StringLength, CountsBytesOrCharacters) {
  // The example of tf.strings.length.
  const Data strings = Text({3}, {"Hello", "TensorFlow", kSmile});
  RunAll<Length>({
      {.name = "bytes", .operands = {strings}, .results = {I32({3}, {5, 10, 4})}},
      {.name = "characters",
       .operands = {strings},
       .attrs = {{"unit", "UTF8_CHAR"}},
       .results = {I32({3}, {5, 10, 1})}},
      {.name = "scalar", .operands = {Text({}, {""})}, .results = {I32({}, {0})}},
  });
}

// tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3) is [0, 2, 2]; the other values are
// FarmHash's published fingerprints.
TEST(StringToHashBucketFast, IsTensorFlows) {
  RunAll<Hash>({
      {.name = "the documented example",
       .operands = {Text({3}, {"Hello", "TensorFlow", "2.x"})},
       .attrs = {{"num_buckets", 3}},
       .results = {I64({3}, {0, 2, 2})}},
      {.name = "many buckets",
       .operands = {Text({2}, {"2applefalse", ""})},
       .attrs = {{"num_buckets", INT64_MAX}},
       .results = {I64({2}, {2794438866806483259, 0x1ae16a3b2f90404f + 1})}},
      {.name = "no buckets",
       .operands = {Text({}, {""})},
       .attrs = {{"num_buckets", 0}},
       .refused = "is not positive"},
  });
}

// SipHash's published values for the key 00 01 .. 0f and the texts 00 01 .. of 0, 1, 8 and 15 bytes; Keras'
// documented buckets.
TEST(StringToHashBucketStrong, IsSipHash) {
  const std::string bytes("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16", 15);
  constexpr int64_t kKey0 = 0x0706050403020100, kKey1 = 0x0f0e0d0c0b0a0908;
  const common::SipHash hash(kKey0, kKey1);
  EXPECT_EQ(hash(""), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(hash(bytes.substr(0, 1)), 0x74f839c593dc67fdU);
  EXPECT_EQ(hash(bytes.substr(0, 8)), 0x93f5f5799a932462U);
  EXPECT_EQ(hash(bytes), 0xa129ca6149be45e5U);
  RunAll<StrongHash>({
      {.name = "buckets",
       .operands = {Text({5}, {"A", "B", "C", "D", "E"})},
       .attrs = {{"num_buckets", 3}, {"key", std::vector<int64_t>{133, 137}}},
       .results = {I64({5}, {1, 2, 1, 0, 2})}},
      {.name = "no key",
       .operands = {Text({}, {""})},
       .attrs = {{"num_buckets", 3}},
       .refused = "has 0 integers, expected 2"},
      {.name = "no buckets",
       .operands = {Text({}, {""})},
       .attrs = {{"num_buckets", 0}, {"key", std::vector<int64_t>{1, 2}}},
       .refused = "is not positive"},
  });
}

// The examples of tf.strings.reduce_join.
TEST(ReduceJoin, JoinsAxesInTheirOrder) {
  const auto table = Text({2, 2}, {"a", "b", "c", "d"});
  RunAll<JoinedAxes>({
      {.name = "the first axis", .operands = {table, I32({}, {0})}, .results = {Text({2}, {"ac", "bd"})}},
      {.name = "the last axis", .operands = {table, I32({1}, {-1})}, .results = {Text({2}, {"ab", "cd"})}},
      {.name = "kept axes",
       .operands = {table, I32({1}, {0})},
       .attrs = {{"keep_dims", true}},
       .results = {Text({1, 2}, {"ac", "bd"})}},
      {.name = "a separator",
       .operands = {table, I64({1}, {1})},
       .attrs = {{"separator", "."}},
       .results = {Text({2}, {"a.b", "c.d"})}},
      {.name = "both axes", .operands = {table, I32({2}, {0, 1})}, .results = {Text({}, {"abcd"})}},
      {.name = "both axes, the first one fastest",
       .operands = {table, I32({2}, {1, 0})},
       .results = {Text({}, {"acbd"})}},
      {.name = "no axis", .operands = {table, I32({0}, {})}, .results = {table}},
      {.name = "nothing to join",
       .operands = {Text({2, 0}, {}), I32({}, {1})},
       .results = {Text({2}, {"", ""})}},
      {.name = "no strings", .operands = {Text({0, 2}, {}), I32({}, {1})}, .results = {Text({0}, {})}},
      {.name = "too many strings",
       .operands = {Text({1 << 30, 0}, {}), I32({}, {1})},
       .error = "the result is too large"},
      {.name = "an axis too far",
       .operands = {table, I32({}, {2})},
       .error = "has the axis 2 of a tensor of rank 2"},
      {.name = "an axis twice", .operands = {table, I32({2}, {0, -2})}, .error = "has an axis twice"},
  });
}

TEST(StaticRegexReplace, RewritesGroups) {
  ExpectMapped<Replace>("Text with tags.<br /><b>contains html</b>", "Text with tags.  contains html ",
                        {{"pattern", "<[^>]+>"}, {"rewrite", " "}});  // tf.strings.regex_replace
  ExpectMapped<Replace>("ab12cd3", "a[b12]c[d3]", {{"pattern", "([a-z]\\d+)"}, {"rewrite", "[\\1]"}});
  ExpectMapped<Replace>("aaa", "baa", {{"pattern", "a"}, {"rewrite", "b"}, {"replace_global", false}});
  ExpectMapped<Replace>("ab", "-a-b-", {{"pattern", ""}, {"rewrite", "-"}});
  ExpectMapped<Replace>("\xC3\xA9x", ".x", {{"pattern", "\xC3\xA9"}, {"rewrite", "."}});
  // What Keras removes as punctuation.
  ExpectMapped<Replace>("He'd [said]: \\ {no}!", "Hed said  no",
                        {{"pattern", "[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']"}, {"rewrite", ""}});
}

TEST(StaticRegexReplace, RefusesBadPatterns) {
  RunAll<Replace>({
      {.name = "an open group",
       .operands = {Text({}, {""})},
       .attrs = {{"pattern", "(a"}, {"rewrite", ""}},
       .refused = "the pattern is invalid: missing ): (a"},
      {.name = "a missing group",
       .operands = {Text({}, {""})},
       .attrs = {{"pattern", "a"}, {"rewrite", "\\1"}},
       .refused = "the rewrite \"\\1\" is invalid"},
      {.name = "no pattern", .operands = {Text({}, {""})}, .refused = "attr pattern: is missing"},
  });
}

TEST(RegexReplace, ReadsItsPattern) {
  const Data strings = Text({2, 1}, {"a1", "b"});
  RunAll<Replaced>({
      {.name = "digits",
       .operands = {strings, Text({}, {"\\d"}), Text({}, {"<\\0>"})},
       .results = {Text({2, 1}, {"a<1>", "b"})}},
      {.name = "an open group",
       .operands = {strings, Text({}, {"("}), Text({}, {""})},
       .error = "the pattern is invalid"},
  });
}

TEST(RegexFullMatch, MatchesTheWholeString) {
  const Data strings = Text({3}, {"TF lib", "lib TF", ""});
  const Data matches = conformance::Bool({3}, {true, false, false});
  RunAll<Match>({{.name = "an operand", .operands = {strings, Text({}, {".*lib$"})}, .results = {matches}}});
  RunAll<FullMatch>({{.name = "an attribute",
                      .operands = {strings},
                      .attrs = {{"pattern", ".*lib$"}},
                      .results = {matches}}});
}

}  // namespace
}  // namespace fusebox::strings_test
