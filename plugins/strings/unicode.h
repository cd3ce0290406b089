// SPDX-License-Identifier: Apache-2.0
// UnicodeTranscode, UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode.
#pragma once

#include "plugins/strings/common.h"
#include "plugins/strings/utf8.h"

namespace fusebox::strings {

// Attributes errors (replace, ignore, strict), replacement_char (U+FFFD), replace_control_characters (also
// U+0000 to U+001F count as errors; false).
class Errors {
 public:
  static void check(const Node& n);
  explicit Errors(const Node& n);
  bool IsError(const Character& c) const { return !c.valid || (controls_ && c.code <= 0x1F); }
  // Calls use(code, byte) for each character, with the byte where it begins. Error: invalid text if errors
  // are strict.
  void Each(std::string_view text, Encoding encoding,
            const std::function<void(uint32_t, int64_t)>& use) const;
  // Returns the code point to use instead of an invalid one, or nothing to use none.
  std::optional<uint32_t> Instead(std::string_view what) const;

 private:
  bool strict_, ignore_, controls_;
  uint32_t replacement_;
};

// Attributes input_encoding, output_encoding (UTF-8, UTF-16-BE, UTF-32-BE), and the attributes of Errors.
class Transcoded {
 public:
  static constexpr std::string_view custom = "UnicodeTranscode";
  static void check(const Node& n);
  explicit Transcoded(const Node& n);
  void operator()(std::string_view text, std::string& to) const;

 private:
  Encoding from_, into_;
  Errors errors_;
};

// Operand: strings of any shape. Results: row splits (attribute Tsplits; i64), code points i32, with offsets
// also the byte where each begins, i64.
template <bool offsets>
class Decoded {
 public:
  static constexpr std::string_view custom = offsets ? "UnicodeDecodeWithOffsets" : "UnicodeDecode";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Decoded(const Node& n);
  void invoke(const Node& n) const;

 private:
  Encoding from_;
  Errors errors_;
};

// Operands: code points i32, row splits (i32 or i64). Result: one string per row.
class Encoded {
 public:
  static constexpr std::string_view custom = "UnicodeEncode";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Encoded(const Node& n);
  void invoke(const Node& n) const;

 private:
  Encoding into_;
  Errors errors_;
};

}  // namespace fusebox::strings
