// SPDX-License-Identifier: Apache-2.0
#include "plugins/text/tokenizer.h"

#include <algorithm>

#include "plugins/common/string_list.h"

namespace fusebox::text {

using namespace common;
namespace {

// A character: its code and size in bytes. Invalid UTF-8 bytes are characters of one byte.
struct Character {
  uint32_t code;
  size_t bytes;
};

Character First(std::string_view text) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(text[i])}; };
  const size_t bytes = byte(0) < 0x80    ? 1
                       : byte(0) >= 0xF0 ? 4
                       : byte(0) >= 0xE0 ? 3
                       : byte(0) >= 0xC0 ? 2
                                         : 1;
  if (bytes == 1 || bytes > text.size()) return {byte(0) < 0x80 ? byte(0) : 0xFFFD, 1};
  uint32_t code = byte(0) & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    code = code << 6 | (byte(i) & 0x3F);
  }
  // Only the shortest encoding is valid UTF-8, and no lead byte exceeds F4.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (byte(0) > 0xF4 || code < kLeast[bytes] || code > 0x10FFFF) return {0xFFFD, 1};
  return {code, bytes};
}

// The Unicode property White_Space.
bool IsSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

void Split(std::string_view text, StringList& tokens) {
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    const Character next = First(text.substr(at));
    if (IsSpace(next.code)) {
      if (at > begin) tokens.Add(text.substr(begin, at - begin));
      begin = at + next.bytes;
    }
    at += next.bytes;
  }
  if (at > begin) tokens.Add(text.substr(begin));
}

}  // namespace

void WhitespaceTokenizer::supports(const Node& n) {
  if (n.in_count() == 1 && n.in(0).dtype() != FBX_STRING)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(n.in(0).dtype()), "operand 0"};
}

void WhitespaceTokenizer::infer(const Node& n, Infer& out) {
  if (n.in_count() != 1) throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands, expected 1"};
  const Tensor in = n.in(0);
  const auto results = static_cast<int>(n.out_count());
  if (results < 1 || results > 3 || (in.rank() >= 0 && in.rank() + 1 != results))
    throw Error{FBX_INVALID,
                std::to_string(results) + " results for strings of rank " + std::to_string(in.rank())};
  out.set(0, FBX_STRING, {-1});
  if (results > 1) out.set(1, FBX_I64, {-1});
  if (results > 2) out.set(2, FBX_I64, {-1});
}

void WhitespaceTokenizer::invoke(const Node& n) const {
  const Strings strings(n.in(0));
  StringList tokens;
  std::vector<int64_t> splits = {0};
  for (int64_t i = 0; i < strings.size(); ++i) {
    Split(strings[i], tokens);
    splits.push_back(tokens.size());
  }
  tokens.Store(n, 0);
  const uint32_t results = n.out_count();
  if (results == 1) return;
  StoreSplits(n, results - 1, splits);
  if (results == 2) return;
  std::vector<int64_t> rows(static_cast<size_t>(n.in(0).dim(0)) + 1);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i) * n.in(0).dim(1);
  StoreSplits(n, 1, rows);
}

}  // namespace fusebox::text
