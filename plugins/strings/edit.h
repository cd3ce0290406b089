// SPDX-License-Identifier: Apache-2.0
// StringJoin, ReduceJoin, Substr, StringLength, hash buckets, and regular expressions.
#pragma once

#include <re2/re2.h>

#include <memory>

#include "plugins/common/fingerprint.h"
#include "plugins/common/sip_hash.h"
#include "plugins/strings/common.h"

namespace fusebox::strings {

// Operands of one shape, or scalars. Attribute separator.
class Joined {
 public:
  static constexpr std::string_view custom = "StringJoin";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Joined(const Node& n) : separator_(n.attrs().s("separator", "")) {}
  void invoke(const Node& n) const;

 private:
  std::string separator_;
};

// Operands: strings, and the axes that are joined (i32 or i64): elements follow each other in the order of
// the axes, of which the last one runs fastest. Attributes keep_dims, separator.
class JoinedAxes {
 public:
  static constexpr std::string_view custom = "ReduceJoin";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit JoinedAxes(const Node& n) : separator_(n.attrs().s("separator", "")) {}
  void invoke(const Node& n) const;

 private:
  std::string separator_;
};

// Operands: strings, position, length (i32 or i64), broadcast. A negative position counts from the end; a
// position outside of the string is an error. A negative length is the rest. Attribute unit: BYTE, UTF8_CHAR.
class Substring {
 public:
  static constexpr std::string_view custom = "Substr";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Substring(const Node& n) : characters_(n.attrs().s("unit", "BYTE") == "UTF8_CHAR") {}
  void invoke(const Node& n) const;

 private:
  bool characters_;
};

// Attribute unit: BYTE, UTF8_CHAR.
class Length {
 public:
  static constexpr std::string_view custom = "StringLength";
  static void check(const Node& n) { OneOf(n, "unit", {"BYTE", "UTF8_CHAR"}); }
  explicit Length(const Node& n) : characters_(n.attrs().s("unit", "BYTE") == "UTF8_CHAR") {}
  int32_t operator()(std::string_view text) const;

 private:
  bool characters_;
};

// Attribute num_buckets.
class HashBucket {
 public:
  static constexpr std::string_view custom = "StringToHashBucketFast";
  static void check(const Node& n) {
    n.require(n.attrs().i64("num_buckets") >= 1, "ATTR", "is not positive", "attr num_buckets");
  }
  explicit HashBucket(const Node& n) : buckets_(static_cast<uint64_t>(n.attrs().i64("num_buckets"))) {}
  int64_t operator()(std::string_view text) const {
    return static_cast<int64_t>(Fingerprint(text) % buckets_);
  }

 private:
  uint64_t buckets_;
};

// Attributes num_buckets and key (two integers).
class StrongHashBucket {
 public:
  static constexpr std::string_view custom = "StringToHashBucketStrong";
  static void check(const Node& n) {
    HashBucket::check(n);
    const size_t count = n.attrs().i64s("key").size();
    n.require(count == 2, "ATTR", "has " + std::to_string(count) + " integers, expected 2", "attr key");
  }
  explicit StrongHashBucket(const Node& n)
      : hash_(static_cast<uint64_t>(n.attrs().i64s("key")[0]),
              static_cast<uint64_t>(n.attrs().i64s("key")[1])),
        buckets_(static_cast<uint64_t>(n.attrs().i64("num_buckets"))) {}
  int64_t operator()(std::string_view text) const { return static_cast<int64_t>(hash_(text) % buckets_); }

 private:
  SipHash hash_;
  uint64_t buckets_;
};

// A pattern in the syntax of RE2. Errors: it is invalid; a rewrite that refers to a missing group.
class Pattern {
 public:
  explicit Pattern(std::string_view pattern);
  void CheckRewrite(std::string_view rewrite) const;
  bool Matches(std::string_view text) const;  // as a whole
  void Replace(std::string_view text, std::string_view rewrite, bool all, std::string& to) const;

 private:
  std::unique_ptr<RE2> regex_;
};

// Attributes pattern, rewrite, replace_global (true).
class StaticReplaced {
 public:
  static constexpr std::string_view custom = "StaticRegexReplace";
  static void check(const Node& n);
  explicit StaticReplaced(const Node& n);
  void operator()(std::string_view text, std::string& to) const {
    pattern_.Replace(text, rewrite_, all_, to);
  }

 private:
  Pattern pattern_;
  std::string rewrite_;
  bool all_;
};

// Attribute pattern.
class StaticMatch {
 public:
  static constexpr std::string_view custom = "StaticRegexFullMatch";
  static void check(const Node& n);
  explicit StaticMatch(const Node& n) : pattern_(n.attrs().s("pattern")) {}
  bool operator()(std::string_view text) const { return pattern_.Matches(text); }

 private:
  Pattern pattern_;
};

// Operands: strings, pattern [], rewrite []. Attribute replace_global (true).
struct Replaced {
  static constexpr std::string_view custom = "RegexReplace";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out) { StringsLike(out, 0, n.in(0)); }
  void invoke(const Node& n) const;
};

// Operands: strings, pattern [].
struct Match {
  static constexpr std::string_view custom = "RegexFullMatch";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0), FBX_BOOL); }
  void invoke(const Node& n) const;
};

}  // namespace fusebox::strings
