// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/unicode.h"

namespace fusebox::strings {
namespace {

Encoding EncodingAttr(const Node& n, std::string_view key) {
  return *EncodingOf(n.attrs().s(key, "UTF-8"));  // supports has checked it
}

void CheckInput(const Node& n) {
  OneOf(n, "input_encoding", {"UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII", "ISO-8859-1"});
}
void CheckOutput(const Node& n) { OneOf(n, "output_encoding", {"UTF-8", "UTF-16-BE", "UTF-32-BE"}); }

}  // namespace

void Errors::check(const Node& n) {
  OneOf(n, "errors", {"replace", "ignore", "strict"});
  const int64_t replacement = n.attrs().i64("replacement_char", kReplacement);
  n.require(IsScalarValue(replacement), "ATTR", "is " + std::to_string(replacement), "attr replacement_char");
}

Errors::Errors(const Node& n)
    : strict_(n.attrs().s("errors", "replace") == "strict"),
      ignore_(n.attrs().s("errors", "replace") == "ignore"),
      controls_(n.attrs().b("replace_control_characters", false)),
      replacement_(static_cast<uint32_t>(n.attrs().i64("replacement_char", kReplacement))) {}

std::optional<uint32_t> Errors::Instead(std::string_view what) const {
  if (strict_) throw Error{FBX_INVALID, std::string(what)};
  return ignore_ ? std::nullopt : std::optional(replacement_);
}

void Errors::Each(std::string_view text, Encoding encoding,
                  const std::function<void(uint32_t, int64_t)>& use) const {
  for (size_t at = 0; at < text.size();) {
    const Character next = First(text.substr(at), encoding);
    const auto code = IsError(next) ? Instead("the text is invalid at byte " + std::to_string(at))
                                    : std::optional(next.code);
    if (code) use(*code, static_cast<int64_t>(at));
    at += next.bytes;
  }
}

void Transcoded::check(const Node& n) {
  CheckInput(n);
  CheckOutput(n);
  Errors::check(n);
}

Transcoded::Transcoded(const Node& n)
    : from_(EncodingAttr(n, "input_encoding")), into_(EncodingAttr(n, "output_encoding")), errors_(n) {}

void Transcoded::operator()(std::string_view text, std::string& to) const {
  errors_.Each(text, from_, [&](uint32_t code, int64_t) { Append(to, code, into_); });
}

template <bool offsets>
void Decoded<offsets>::supports(const Node& n) {
  n.arity(1, offsets ? 3 : 2);
  n.operand(0, FBX_STRING);
  CheckInput(n);
  Errors::check(n);
  const fbx_dtype splits = DTypeAttr(n, "Tsplits", FBX_I64);
  n.require(splits == FBX_I32 || splits == FBX_I64, "ATTR", dtype_name(splits), "attr Tsplits");
}

template <bool offsets>
void Decoded<offsets>::infer(const Node& n, Infer& out) {
  out.set(0, DTypeAttr(n, "Tsplits", FBX_I64), {-1});
  out.set(1, FBX_I32, {-1});
  if (offsets) out.set(2, FBX_I64, {-1});
}

template <bool offsets>
Decoded<offsets>::Decoded(const Node& n) : from_(EncodingAttr(n, "input_encoding")), errors_(n) {}

template <bool offsets>
void Decoded<offsets>::invoke(const Node& n) const {
  const Strings in(n.in(0));
  std::vector<int64_t> splits = {0};
  std::vector<int64_t> starts;
  std::vector<int32_t> codes;
  for (int64_t i = 0; i < in.size(); ++i) {
    errors_.Each(in[i], from_, [&](uint32_t code, int64_t at) {
      codes.push_back(static_cast<int32_t>(code));
      if (offsets) starts.push_back(at);
    });
    splits.push_back(static_cast<int64_t>(codes.size()));
  }
  StoreSplits(n, 0, splits);
  const auto count = static_cast<int64_t>(codes.size());
  std::ranges::copy(codes, n.resize(1, {&count, 1}).template data<int32_t>());
  if (offsets) StoreSplits(n, 2, starts);
}
template class Decoded<false>;
template class Decoded<true>;

void Encoded::supports(const Node& n) {
  n.arity(2, 1);
  n.operand(0, FBX_I32);
  RequireInteger(n, 1);
  CheckOutput(n);
  Errors::check(n);
}

void Encoded::infer(const Node& n, Infer& out) {
  for (uint32_t i = 0; i < 2; ++i)
    if (n.in(i).rank() >= 0 && n.in(i).rank() != 1)
      throw Error{FBX_INVALID, "has rank " + std::to_string(n.in(i).rank()) + ", expected 1", Subject(i)};
  out.set(0, FBX_STRING, {-1});
}

Encoded::Encoded(const Node& n) : into_(EncodingAttr(n, "output_encoding")), errors_(n) {}

void Encoded::invoke(const Node& n) const {
  const auto codes = n.in(0).values<const int32_t>();
  const std::vector<int64_t> splits = Splits(n, 1, static_cast<int64_t>(codes.size()));
  StringList out;
  for (size_t row = 0; row + 1 < splits.size(); ++row) {
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      const int32_t code = codes[static_cast<size_t>(i)];
      const auto valid = IsScalarValue(code) ? std::optional(static_cast<uint32_t>(code))
                                             : errors_.Instead(std::to_string(code) + " is no code point");
      if (valid) Append(out.bytes(), *valid, into_);
    }
    out.Close();
  }
  out.Store(n, 0);
}

}  // namespace fusebox::strings
