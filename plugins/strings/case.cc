// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/case.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "plugins/strings/case_table.h"
#include "plugins/strings/utf8.h"

namespace fusebox::strings {
namespace {

constexpr uint32_t kSigma = 0x3A3;
constexpr uint32_t kFinalSigma = 0x3C2;
constexpr uint32_t kDottedI = 0x130;
constexpr uint32_t kDotAbove = 0x307;

utf8proc_category_t CategoryOf(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool IsCased(uint32_t code) {
  const auto category = CategoryOf(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || code == 0xAA || code == 0xBA ||  // ordinal indicators
         utf8proc_tolower(static_cast<int32_t>(code)) != utf8proc_toupper(static_cast<int32_t>(code));
}

// Marks, modifiers, format characters, and punctuation inside of words.
bool IsCaseIgnorable(uint32_t code) {
  constexpr uint32_t kInWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                   0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  const auto category = CategoryOf(code);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK || std::ranges::find(kInWords, code) != std::end(kInWords);
}

// True if a letter follows, before the word ends.
bool LetterFollows(std::string_view text) {
  while (!text.empty()) {
    const Character next = First(text);
    if (!IsCaseIgnorable(next.code)) return IsCased(next.code);
    text.remove_prefix(next.bytes);
  }
  return false;
}

void AppendUpper(std::string& to, uint32_t code) {
  const auto* const special = std::ranges::lower_bound(kUpperCases, code, {}, &UpperCase::code);
  if (special == std::end(kUpperCases) || special->code != code)
    return Append(to, static_cast<uint32_t>(utf8proc_toupper(static_cast<int32_t>(code))));
  for (const uint32_t upper : special->upper)
    if (upper != 0) Append(to, upper);
}

// A sigma after a letter and not before one ends a word.
void AppendLower(std::string& to, uint32_t code, bool after_letter, std::string_view rest) {
  if (code == kSigma && after_letter && !LetterFollows(rest)) return Append(to, kFinalSigma);
  if (code == kDottedI) {
    Append(to, 'i');
    return Append(to, kDotAbove);
  }
  Append(to, static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(code))));
}

void AppendMapped(std::string& to, std::string_view text, int options) {
  const std::string valid = Sanitized(text);
  utf8proc_uint8_t* mapped = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                 static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                                 static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) throw Error{FBX_OUT_OF_MEMORY, utf8proc_errmsg(size)};
  to.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

}  // namespace

template <bool upper>
void Cased<upper>::operator()(std::string_view text, std::string& to) const {
  if (!unicode_) {
    constexpr char kFirst = upper ? 'a' : 'A';
    for (const char c : text) to += c >= kFirst && c < kFirst + 26 ? static_cast<char>(c ^ 0x20) : c;
    return;
  }
  bool letter = false;
  while (!text.empty()) {
    const Character next = First(text);
    text.remove_prefix(next.bytes);
    if constexpr (upper) AppendUpper(to, next.code);
    else AppendLower(to, next.code, letter, text);
    if (!IsCaseIgnorable(next.code)) letter = IsCased(next.code);
  }
}
template class Cased<false>;
template class Cased<true>;

Normalized::Normalized(const Node& n) {
  const std::string_view form = n.attrs().s("normalization_form", "NFKC");
  options_ = UTF8PROC_STABLE | (form.ends_with('C') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
             (form.starts_with("NFK") ? UTF8PROC_COMPAT : 0);
}

void Normalized::operator()(std::string_view text, std::string& to) const {
  AppendMapped(to, text, options_);
}

void CaseFolded::operator()(std::string_view text, std::string& to) const {
  AppendMapped(to, text,
               UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
}

void Stripped::operator()(std::string_view text, std::string& to) const {
  while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsAsciiSpace(text.back())) text.remove_suffix(1);
  to += text;
}

}  // namespace fusebox::strings
