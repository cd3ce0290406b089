// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/edit.h"

#include <limits>

#include "plugins/strings/utf8.h"

namespace fusebox::strings {
namespace {

// The byte where each character begins, and the end of the text. Trail bytes belong to what is before them.
std::vector<size_t> Starts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i)
    if (i == 0 || !IsTrail(text[i])) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

// The range [begin, begin + size) of a sequence of `count`.
std::pair<size_t, size_t> RangeOf(int64_t position, int64_t length, size_t count) {
  const auto all = static_cast<int64_t>(count);
  if (position < -all || position > all)
    throw Error{FBX_INVALID, "position " + std::to_string(position) + " is outside of a string of " +
                                 std::to_string(all) + " units"};
  const int64_t begin = position < 0 ? position + all : position;
  const int64_t most = all - begin;
  return {static_cast<size_t>(begin), static_cast<size_t>(length < 0 ? most : std::min(length, most))};
}

// Runs f; an error becomes the reason to decline the node.
template <class F>
void Declined(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    throw Reject{"ATTR", e.message};
  }
}

// RE2 has a special type for this: in some versions Abseil's, which may differ from the standard one.
re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// Axes of ReduceJoin, none negative.
std::vector<int64_t> AxesOf(const Node& n) {
  std::vector<int64_t> axes = Integers(n.in(1));
  const int64_t rank = n.in(0).rank();
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      throw Error{FBX_INVALID,
                  "has the axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank),
                  Subject(1)};
    if (axis < 0) axis += rank;
  }
  std::vector<int64_t> sorted = axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    throw Error{FBX_INVALID, "has an axis twice", Subject(1)};
  return axes;
}

// The shape of the result of ReduceJoin.
std::vector<int64_t> DimsWithout(const Node& n, const std::vector<int64_t>& axes) {
  std::vector<int64_t> dims = DimsOf(n.in(0));
  std::vector<int64_t> left;
  const bool keep = n.attrs().b("keep_dims", false);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (std::ranges::find(axes, static_cast<int64_t>(d)) == axes.end()) left.push_back(dims[d]);
    else if (keep) left.push_back(1);
  }
  return left;
}

// Offsets of the elements of some dimensions; the last one runs fastest.
class Walk {
 public:
  void Add(int64_t size, int64_t stride) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;  // strings of a tensor
    if (size > 0 && count_ > kMost / size) throw Error{FBX_OUT_OF_MEMORY, "the result is too large"};
    sizes_.push_back(size);
    strides_.push_back(stride);
    count_ *= size;
  }
  int64_t count() const { return count_; }
  int64_t at(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0; i /= sizes_[d]) offset += i % sizes_[d] * strides_[d];
    return offset;
  }

 private:
  std::vector<int64_t> sizes_, strides_;
  int64_t count_ = 1;
};

}  // namespace

void Joined::supports(const Node& n) {
  n.require(n.in_count() >= 1, "ARITY", "has no operands");
  n.arity(n.in_count(), 1);
  for (uint32_t i = 0; i < n.in_count(); ++i) n.operand(i, FBX_STRING);
}

void Joined::infer(const Node& n, Infer& out) {
  // The first operand that is no scalar has the shape of the result.
  uint32_t shaped = 0;
  while (shaped + 1 < n.in_count() && n.in(shaped).rank() == 0) ++shaped;
  for (uint32_t i = 0; i < n.in_count(); ++i) {
    const Tensor a = n.in(shaped);
    const Tensor b = n.in(i);
    if (b.rank() == 0 || !a.is_static() || !b.is_static()) continue;
    if (!std::ranges::equal(a.dims(), b.dims()))
      throw Error{FBX_INVALID, "is " + ShapeText(b) + ", expected " + ShapeText(a) + " or a scalar",
                  Subject(i)};
  }
  StringsLike(out, 0, n.in(shaped));
}

void Joined::invoke(const Node& n) const {
  std::vector<Strings> parts;
  int64_t count = 1;
  std::vector<int64_t> dims;
  for (uint32_t i = 0; i < n.in_count(); ++i) {
    parts.emplace_back(n.in(i));
    if (n.in(i).rank() == 0) continue;
    count = parts.back().size();
    dims = DimsOf(n.in(i));
  }
  StringList joined;
  for (int64_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) joined.bytes() += separator_;
      joined.bytes() += parts[i][n.in(static_cast<uint32_t>(i)).rank() == 0 ? 0 : k];
    }
    joined.Close();
  }
  joined.Store(n, 0, dims);
}

void JoinedAxes::supports(const Node& n) {
  n.arity(2, 1);
  n.operand(0, FBX_STRING);
  RequireInteger(n, 1);
}

void JoinedAxes::infer(const Node& n, Infer& out) {
  if (!n.in(1).has_value()) out.needs_value(1);
  if (n.in(0).rank() < 0 || !n.in(1).has_value()) return out.unranked(0, FBX_STRING);
  auto dims = DimsWithout(n, AxesOf(n));
  if (dims.empty()) return out.unranked(0, FBX_STRING);
  dims[0] = -1;  // memory is allocated when the strings are known
  out.set(0, FBX_STRING, dims);
}

void JoinedAxes::invoke(const Node& n) const {
  const Strings texts(n.in(0));
  const std::vector<int64_t> dims = DimsOf(n.in(0));
  const std::vector<int64_t> axes = AxesOf(n);
  Walk joined;
  Walk kept;
  int64_t stride = 1;
  std::vector<int64_t> strides(dims.size());
  for (size_t d = dims.size(); d-- > 0 && texts.size() > 0; stride *= dims[d]) strides[d] = stride;
  for (const int64_t axis : axes)
    joined.Add(dims[static_cast<size_t>(axis)], strides[static_cast<size_t>(axis)]);
  for (size_t d = 0; d < dims.size(); ++d)
    if (std::ranges::find(axes, static_cast<int64_t>(d)) == axes.end()) kept.Add(dims[d], strides[d]);
  StringList out;
  for (int64_t i = 0; i < kept.count(); ++i) {
    for (int64_t k = 0; k < joined.count(); ++k) {
      if (k > 0) out.bytes() += separator_;
      out.bytes() += texts[kept.at(i) + joined.at(k)];
    }
    out.Close();
  }
  out.Store(n, 0, DimsWithout(n, axes));
}

void Substring::supports(const Node& n) {
  n.arity(3, 1);
  n.operand(0, FBX_STRING);
  RequireInteger(n, 1);
  RequireInteger(n, 2);
  OneOf(n, "unit", {"BYTE", "UTF8_CHAR"});
}

void Substring::infer(const Node& n, Infer& out) {
  for (uint32_t i = 0; i < 3; ++i)
    if (n.in(i).rank() < 0) return out.unranked(0, FBX_STRING);
  auto dims = BroadcastDims(BroadcastDims(n.in(0).dims(), n.in(1).dims()), n.in(2).dims());
  if (dims.empty()) return out.unranked(0, FBX_STRING);
  dims[0] = -1;
  out.set(0, FBX_STRING, dims);
}

void Substring::invoke(const Node& n) const {
  const auto dims = BroadcastDims(BroadcastDims(n.in(0).dims(), n.in(1).dims()), n.in(2).dims());
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  const Strings texts(n.in(0));
  const std::vector<int64_t> positions = Integers(n.in(1));
  const std::vector<int64_t> lengths = Integers(n.in(2));
  const Broadcast text(n.in(0), dims);
  const Broadcast position(n.in(1), dims);
  const Broadcast length(n.in(2), dims);
  StringList parts;
  for (int64_t k = 0; k < count; ++k) {
    const std::string_view whole = texts[text.at(k)];
    const int64_t from = positions[static_cast<size_t>(position.at(k))];
    const int64_t size = lengths[static_cast<size_t>(length.at(k))];
    if (!characters_) {
      const auto [begin, bytes] = RangeOf(from, size, whole.size());
      parts.Add(whole.substr(begin, bytes));
      continue;
    }
    const std::vector<size_t> starts = Starts(whole);
    const auto [begin, characters] = RangeOf(from, size, starts.size() - 1);
    parts.Add(whole.substr(starts[begin], starts[begin + characters] - starts[begin]));
  }
  parts.Store(n, 0, dims);
}

int32_t Length::operator()(std::string_view text) const {
  const auto count = characters_ ? std::ranges::count_if(text, [](char c) { return !IsTrail(c); })
                                 : static_cast<std::ptrdiff_t>(text.size());
  return static_cast<int32_t>(count);
}

Pattern::Pattern(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  regex_ = std::make_unique<RE2>(Piece(pattern), options);
  if (!regex_->ok()) throw Error{FBX_INVALID, "the pattern is invalid: " + regex_->error()};
}

void Pattern::CheckRewrite(std::string_view rewrite) const {
  std::string why;
  if (!regex_->CheckRewriteString(Piece(rewrite), &why))
    throw Error{FBX_INVALID, "the rewrite \"" + std::string(rewrite) + "\" is invalid: " + why};
}

bool Pattern::Matches(std::string_view text) const { return RE2::FullMatch(Piece(text), *regex_); }

void Pattern::Replace(std::string_view text, std::string_view rewrite, bool all, std::string& to) const {
  std::string changed(text);
  if (all) RE2::GlobalReplace(&changed, *regex_, Piece(rewrite));
  else RE2::Replace(&changed, *regex_, Piece(rewrite));
  to += changed;
}

void StaticReplaced::check(const Node& n) {
  n.attr("pattern");
  n.attr("rewrite");
  Declined([&] { StaticReplaced valid(n); });
}

StaticReplaced::StaticReplaced(const Node& n)
    : pattern_(n.attrs().s("pattern")),
      rewrite_(n.attrs().s("rewrite")),
      all_(n.attrs().b("replace_global", true)) {
  pattern_.CheckRewrite(rewrite_);
}

void StaticMatch::check(const Node& n) {
  n.attr("pattern");
  Declined([&] { Pattern valid(n.attrs().s("pattern")); });
}

void Replaced::supports(const Node& n) {
  n.arity(3, 1);
  for (uint32_t i = 0; i < 3; ++i) n.operand(i, FBX_STRING);
}

void Replaced::invoke(const Node& n) const {
  const Strings in(n.in(0));
  const Pattern pattern(TextOf(n, 1));
  const std::string_view rewrite = TextOf(n, 2);
  pattern.CheckRewrite(rewrite);
  const bool all = n.attrs().b("replace_global", true);
  StringList out;
  for (int64_t i = 0; i < in.size(); ++i) {
    pattern.Replace(in[i], rewrite, all, out.bytes());
    out.Close();
  }
  out.Store(n, 0, DimsOf(n.in(0)));
}

void Match::supports(const Node& n) {
  n.arity(2, 1);
  for (uint32_t i = 0; i < 2; ++i) n.operand(i, FBX_STRING);
}

void Match::invoke(const Node& n) const {
  const Strings in(n.in(0));
  const Pattern pattern(TextOf(n, 1));
  bool* const out = n.out(0).data<bool>();
  for (int64_t i = 0; i < in.size(); ++i) out[i] = pattern.Matches(in[i]);
}

}  // namespace fusebox::strings
