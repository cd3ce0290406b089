// SPDX-License-Identifier: Apache-2.0
// Writing string tensors of unknown size, and row splits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fusebox/kernel.hpp>
#include <fusebox/strings.hpp>

namespace fusebox::common {

using namespace sdk;

// A string result under construction.
class StringList {
 public:
  void Add(std::string_view text) {
    bytes_ += text;
    Close();
  }
  // Appends to the last string.
  void Append(std::string_view text) {
    bytes_ += text;
    if (bytes_.size() > kMost) TooLarge();
    ends_.back() = static_cast<uint32_t>(bytes_.size());
  }
  // The bytes so far, to which a caller appends one string; Close ends it.
  std::string& bytes() { return bytes_; }
  void Close() {
    if (bytes_.size() > kMost || ends_.size() > kMost / 4) TooLarge();
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Sets result i to these strings, as a list or with the given dims.
  void Store(const Node& n, uint32_t i) const { Store(n, i, std::vector<int64_t>{size()}); }
  void Store(const Node& n, uint32_t i, const std::vector<int64_t>& dims) const {
    const size_t header = 4 * (ends_.size() + 2);
    const size_t all = header + bytes_.size();
    if (all > kMost) TooLarge();
    auto* const to = n.resize(i, dims, all).data<char>();
    const auto put = [&](size_t at, size_t value) {
      const auto number = static_cast<int32_t>(value);
      std::memcpy(to + 4 * at, &number, sizeof(number));
    };
    put(0, ends_.size());
    put(1, header);
    for (size_t k = 0; k < ends_.size(); ++k) put(k + 2, header + ends_[k]);
    std::memcpy(to + header, bytes_.data(), bytes_.size());
  }

 private:
  static constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  [[noreturn]] static void TooLarge() {
    throw Error{FBX_OUT_OF_MEMORY, "strings too large for a string tensor"};
  }

  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// i32 or i64 values. Throws Error for other types.
inline std::vector<int64_t> Integers(const Tensor& t) {
  if (t.dtype() == FBX_I32) {
    const auto values = t.values<const int32_t>();
    return {values.begin(), values.end()};
  }
  const auto values = t.values<const int64_t>();
  return {values.begin(), values.end()};
}

// Row splits: [0, ..., count], ascending. Throws Error otherwise.
inline std::vector<int64_t> Splits(const Node& n, uint32_t operand, int64_t count) {
  std::vector<int64_t> splits = Integers(n.in(operand));
  if (splits.empty() || splits.front() != 0 || splits.back() != count || !std::ranges::is_sorted(splits))
    throw Error{FBX_INVALID, "are not row splits of " + std::to_string(count) + " values",
                "operand " + std::to_string(operand)};
  return splits;
}

// Sets a list of unknown size, i32 or i64.
inline void StoreSplits(const Node& n, uint32_t result, const std::vector<int64_t>& splits) {
  const auto count = static_cast<int64_t>(splits.size());
  const Tensor out = n.resize(result, {&count, 1});
  if (out.dtype() == FBX_I32) {
    std::ranges::transform(splits, out.data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
  } else {
    std::ranges::copy(splits, out.data<int64_t>());
  }
}

}  // namespace fusebox::common
