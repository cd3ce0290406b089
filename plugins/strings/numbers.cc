// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "plugins/strings/case.h"

namespace fusebox::strings {
namespace {

constexpr int64_t kWidest = 1000;  // of a field, and of a fraction

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsAsciiSpace(text.back())) text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> ParseWhole(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsHex(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

// Out of range: infinite or zero, depending on the first digit that counts.
template <class T>
T OutOfRange(std::string_view digits) {
  if constexpr (std::is_same_v<T, float>) {
    double wider = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), wider).ec == std::errc())
      return static_cast<float>(wider);
  }
  const size_t exponent = digits.find_first_of("eEpP");
  const bool small = exponent != std::string_view::npos ? digits.substr(exponent + 1).starts_with('-')
                                                        : digits.starts_with("0.") || digits.starts_with('.');
  return small ? T{0} : std::numeric_limits<T>::infinity();
}

template <class T>
std::optional<T> ParseReal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool hex = IsHex(text);
  if (hex) text.remove_prefix(2);
  if (text.empty() || text.front() == '-') return std::nullopt;
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value,
                                            hex ? std::chars_format::hex : std::chars_format::general);
  // "nan(...)" is no number of TensorFlow.
  if (end != text.data() + text.size() || error == std::errc::invalid_argument || text.back() == ')')
    return std::nullopt;
  if (error == std::errc::result_out_of_range) value = OutOfRange<T>(text);
  return negative ? -value : value;
}

template <class T>
void ParseAll(const Node& n) {
  const Strings in(n.in(0));
  T* const out = n.out(0).data<T>();
  for (int64_t i = 0; i < in.size(); ++i) {
    std::optional<T> value;
    if constexpr (std::is_integral_v<T>) value = ParseWhole<T>(Trimmed(in[i]));
    else value = ParseReal<T>(Trimmed(in[i]));
    if (!value)
      throw Error{FBX_INVALID, "string " + std::to_string(i) + ", \"" + std::string(in[i].substr(0, 40)) +
                                   "\", is no " + dtype_name(dtype_of<T>)};
    out[i] = *value;
  }
}

}  // namespace

void ToNumber::supports(const Node& n) {
  n.arity(1, 1);
  n.operand(0, FBX_STRING);
  const fbx_dtype dtype = DTypeAttr(n, "out_type", FBX_F32);
  n.require(dtype == FBX_F32 || dtype == FBX_F64 || dtype == FBX_I32 || dtype == FBX_I64, "ATTR",
            std::string("is ") + dtype_name(dtype), "attr out_type");
}

void ToNumber::infer(const Node& n, Infer& out) { out.like(0, n.in(0), DTypeAttr(n, "out_type", FBX_F32)); }

void ToNumber::invoke(const Node& n) const {
  switch (n.out(0).dtype()) {
    case FBX_F64: return ParseAll<double>(n);
    case FBX_I32: return ParseAll<int32_t>(n);
    case FBX_I64: return ParseAll<int64_t>(n);
    default: return ParseAll<float>(n);
  }
}

void AsText::supports(const Node& n) {
  n.arity(1, 1);
  n.require(n.has_in(0), "ARITY", "is absent", Subject(0));
  const fbx_dtype dtype = n.in(0).dtype();
  const bool real = dtype == FBX_F32 || dtype == FBX_F64;
  const bool whole = dtype == FBX_I8 || dtype == FBX_I16 || dtype == FBX_I32 || dtype == FBX_I64 ||
                     dtype == FBX_U8 || dtype == FBX_U16 || dtype == FBX_U32 || dtype == FBX_U64;
  n.require(real || whole || dtype == FBX_BOOL || dtype == FBX_STRING, "DTYPE",
            std::string("is ") + dtype_name(dtype), Subject(0));
  const bool scientific = n.attrs().b("scientific", false);
  const bool shortest = n.attrs().b("shortest", false);
  n.require(!(scientific && shortest), "ATTR", "is set together with shortest", "attr scientific");
  n.require(real || !(scientific || shortest), "ATTR", "is for floats only", "attr scientific or shortest");
  const int64_t precision = n.attrs().i64("precision", -1);
  const int64_t width = n.attrs().i64("width", -1);
  n.require(real || precision < 0, "ATTR", "is for floats only", "attr precision");
  n.require(precision <= kWidest, "ATTR", "is " + std::to_string(precision), "attr precision");
  n.require(width <= kWidest, "ATTR", "is " + std::to_string(width), "attr width");
  OneOf(n, "fill", {"", " ", "0", "+", "-"});
}

AsText::AsText(const Node& n)
    : precision_(static_cast<int>(n.attrs().i64("precision", -1))),
      format_(n.attrs().b("scientific", false) ? 'e'
              : n.attrs().b("shortest", false) ? 'g'
                                               : 'f'),
      width_(static_cast<size_t>(std::max<int64_t>(n.attrs().i64("width", -1), 0))) {
  const std::string_view fill = n.attrs().s("fill", "");
  fill_ = fill.empty() ? '\0' : fill[0];
  if (precision_ < 0) precision_ = 6;  // printf's
}

void AsText::Add(std::string_view digits, bool number, StringList& out) const {
  std::string& to = out.bytes();
  std::string sign;
  if (digits.starts_with('-')) {
    sign = "-";
    digits.remove_prefix(1);
  } else if (number && (fill_ == '+' || fill_ == ' ')) {
    sign = fill_;
  }
  const size_t size = sign.size() + digits.size();
  const size_t padding = width_ > size ? width_ - size : 0;
  const bool zeros = fill_ == '0' && number && digits[0] >= '0' && digits[0] <= '9';  // not infinity
  if (fill_ != '-' && !zeros) to.append(padding, ' ');
  to += sign;
  if (zeros) to.append(padding, '0');
  to += digits;
  if (fill_ == '-') to.append(padding, ' ');
  out.Close();
}

template <class T>
void AsText::Each(const Node& n, StringList& out) const {
  std::array<char, 2 * kWidest> text;
  for (const T value : n.in(0).values<const T>()) {
    char* const begin = text.data();
    char* const end = begin + text.size();
    std::to_chars_result done{};
    if constexpr (std::is_floating_point_v<T>) {
      const auto format = format_ == 'e'   ? std::chars_format::scientific
                          : format_ == 'g' ? std::chars_format::general
                                           : std::chars_format::fixed;
      done = std::to_chars(begin, end, static_cast<double>(value), format, precision_);
    } else {
      done = std::to_chars(begin, end, value);
    }
    Add({begin, done.ptr}, true, out);
  }
}

void AsText::invoke(const Node& n) const {
  StringList out;
  const Tensor in = n.in(0);
  switch (in.dtype()) {
    case FBX_F32: Each<float>(n, out); break;
    case FBX_F64: Each<double>(n, out); break;
    case FBX_I8: Each<int8_t>(n, out); break;
    case FBX_I16: Each<int16_t>(n, out); break;
    case FBX_I32: Each<int32_t>(n, out); break;
    case FBX_I64: Each<int64_t>(n, out); break;
    case FBX_U8: Each<uint8_t>(n, out); break;
    case FBX_U16: Each<uint16_t>(n, out); break;
    case FBX_U32: Each<uint32_t>(n, out); break;
    case FBX_U64: Each<uint64_t>(n, out); break;
    case FBX_BOOL:
      for (const bool value : in.values<const bool>()) Add(value ? "true" : "false", false, out);
      break;
    default: {
      const Strings strings(in);
      for (int64_t i = 0; i < strings.size(); ++i) Add(strings[i], false, out);
    }
  }
  out.Store(n, 0, DimsOf(in));
}

}  // namespace fusebox::strings
