// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/split.h"

#include "plugins/strings/case.h"

namespace fusebox::strings {
namespace {

constexpr int64_t kWidestNgram = 1024;  // n-grams with padding take time quadratic in their width

using Tokens = std::vector<std::string_view>;

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
  return text;
}

void SplitAtSpace(std::string_view text, int64_t most, Tokens& tokens) {
  for (text = TrimLeft(text); !text.empty();) {
    size_t size = 0;
    while (size < text.size() && !IsAsciiSpace(text[size])) ++size;
    tokens.push_back(text.substr(0, size));
    text = TrimLeft(text.substr(size));
    if (most <= 0 || static_cast<int64_t>(tokens.size()) < most) continue;
    tokens.push_back(text);  // also if it is empty
    return;
  }
}

void SplitAt(std::string_view delimiter, std::string_view text, int64_t most, Tokens& tokens) {
  for (size_t at; (at = text.find(delimiter)) != std::string_view::npos;) {
    tokens.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
    if (most > 0 && static_cast<int64_t>(tokens.size()) == most) break;
  }
  tokens.push_back(text);
}

void SplitAtAnyOf(std::string_view delimiters, std::string_view text, bool skip_empty, Tokens& tokens) {
  if (text.empty()) return;  // also without skip_empty
  const auto add = [&](std::string_view token) {
    if (!skip_empty || !token.empty()) tokens.push_back(token);
  };
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) tokens.push_back(text.substr(i, 1));
    return;
  }
  for (size_t at; (at = text.find_first_of(delimiters)) != std::string_view::npos;) {
    add(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  add(text);
}

}  // namespace

template <bool second_version>
void Split<second_version>::supports(const Node& n) {
  n.arity(2, 3);
  n.operand(0, FBX_STRING);
  n.operand(1, FBX_STRING);
}

template <bool second_version>
void Split<second_version>::infer(const Node& n, Infer& out) {
  if (n.in(0).rank() >= 0 && n.in(0).rank() != 1)
    throw Error{FBX_INVALID, "has rank " + std::to_string(n.in(0).rank()) + ", expected 1", Subject(0)};
  out.set(0, FBX_I64, {-1, 2});
  out.set(1, FBX_STRING, {-1});
  out.set(2, FBX_I64, {2});
}

template <bool second_version>
Split<second_version>::Split(const Node& n) {
  if constexpr (second_version) most_ = n.attrs().i64("maxsplit", -1);
  else skip_empty_ = n.attrs().b("skip_empty", true);
}

template <bool second_version>
void Split<second_version>::invoke(const Node& n) const {
  const Strings in(n.in(0));
  const std::string_view delimiter = TextOf(n, 1);
  std::vector<int64_t> indices;
  StringList all;
  Tokens tokens;
  int64_t widest = 0;
  for (int64_t i = 0; i < in.size(); ++i) {
    tokens.clear();
    if constexpr (!second_version) SplitAtAnyOf(delimiter, in[i], skip_empty_, tokens);
    else if (most_ == 0) tokens.push_back(in[i]);
    else if (delimiter.empty()) SplitAtSpace(in[i], most_, tokens);
    else SplitAt(delimiter, in[i], most_, tokens);
    for (size_t k = 0; k < tokens.size(); ++k) {
      indices.insert(indices.end(), {i, static_cast<int64_t>(k)});
      all.Add(tokens[k]);
    }
    widest = std::max(widest, static_cast<int64_t>(tokens.size()));
  }
  std::ranges::copy(indices, n.resize(0, std::vector<int64_t>{all.size(), 2}).template data<int64_t>());
  all.Store(n, 1);
  n.out(2).template data<int64_t>()[0] = in.size();
  n.out(2).template data<int64_t>()[1] = widest;
}
template class Split<false>;
template class Split<true>;

void Ngrams::supports(const Node& n) {
  n.arity(2, 2);
  n.operand(0, FBX_STRING);
  RequireInteger(n, 1);
  const auto widths = n.attrs().i64s("ngram_widths");
  n.require(!widths.empty(), "ATTR", "is missing or empty", "attr ngram_widths");
  for (const int64_t width : widths)
    n.require(width >= 1 && width <= kWidestNgram, "ATTR", "has " + std::to_string(width),
              "attr ngram_widths");
  const int64_t pad = n.attrs().i64("pad_width", 0);
  n.require(pad >= -1 && pad <= kWidestNgram, "ATTR", "is " + std::to_string(pad), "attr pad_width");
}

void Ngrams::infer(const Node& n, Infer& out) {
  for (uint32_t i = 0; i < 2; ++i)
    if (n.in(i).rank() >= 0 && n.in(i).rank() != 1)
      throw Error{FBX_INVALID, "has rank " + std::to_string(n.in(i).rank()) + ", expected 1", Subject(i)};
  out.set(0, FBX_STRING, {-1});
  out.set(1, n.in(1).dtype(), {-1});
}

Ngrams::Ngrams(const Node& n)
    : separator_(n.attrs().s("separator", "")),
      left_(n.attrs().s("left_pad", "")),
      right_(n.attrs().s("right_pad", "")),
      widths_(n.attrs().i64s("ngram_widths").begin(), n.attrs().i64s("ngram_widths").end()),
      pad_(n.attrs().i64("pad_width", 0)),
      short_(n.attrs().b("preserve_short_sequences", false)) {}

int64_t Ngrams::PadOf(int64_t width) const { return pad_ < 0 ? width - 1 : std::min(pad_, width - 1); }

void Ngrams::Add(const Strings& tokens, int64_t begin, int64_t end, int64_t start, int64_t width,
                 StringList& grams) const {
  std::string& to = grams.bytes();
  for (int64_t k = 0; k < width; ++k) {
    const int64_t at = begin + start + k;
    if (k > 0) to += separator_;
    to += at < begin ? std::string_view(left_) : at >= end ? std::string_view(right_) : tokens[at];
  }
  grams.Close();
}

void Ngrams::invoke(const Node& n) const {
  const Strings tokens(n.in(0));
  // TensorFlow accepts no splits at all for no rows.
  const std::vector<int64_t> splits =
      n.in(1).count() == 0 ? std::vector<int64_t>() : Splits(n, 1, tokens.size());
  StringList grams;
  std::vector<int64_t> ends;
  if (!splits.empty()) ends.push_back(0);
  for (size_t row = 0; row + 1 < splits.size(); ++row) {
    const int64_t begin = splits[row];
    const int64_t end = splits[row + 1];
    const int64_t before = grams.size();
    for (const int64_t width : widths_) {
      const int64_t pad = PadOf(width);
      for (int64_t start = -pad; start + width <= end - begin + pad; ++start)
        Add(tokens, begin, end, start, width, grams);
    }
    if (short_ && grams.size() == before && end > begin && pad_ >= 0)
      Add(tokens, begin, end, -pad_, end - begin + 2 * pad_, grams);
    ends.push_back(grams.size());
  }
  grams.Store(n, 0);
  StoreSplits(n, 1, ends);
}

}  // namespace fusebox::strings
