// SPDX-License-Identifier: Apache-2.0
#include "plugins/text/strings.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fusebox::text {
namespace {

int32_t ReadInt(const char* at) {
  int32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

Strings::Strings(Tensor t) : data_(t.data<const char>()), bytes_(t.bytes()), count_(t.count()) {
  const bool whole =
      bytes_ >= 4 && count_ >= 0 && ReadInt(data_) == count_ && bytes_ / 4 >= static_cast<size_t>(count_) + 2;
  if (!whole && !(count_ == 0 && bytes_ < 8))
    throw Error{FBX_INVALID, "the strings are damaged", std::string(t.name())};
}

std::string_view Strings::operator[](int64_t i) const {
  const int64_t begin = ReadInt(data_ + 4 * (i + 1)), end = ReadInt(data_ + 4 * (i + 2));
  if (begin < 0 || end < begin || static_cast<size_t>(end) > bytes_)
    throw Error{FBX_INVALID, "string " + std::to_string(i) + " is damaged"};
  return {data_ + begin, static_cast<size_t>(end - begin)};
}

void StringList::Add(std::string_view text) {
  bytes_ += text;
  ends_.push_back(bytes_.size());
}

void StringList::Append(std::string_view text) {
  bytes_ += text;
  ends_.back() = bytes_.size();
}

void StringList::Store(const Node& n, uint32_t i, const std::vector<int64_t>& dims) const {
  const size_t header = 4 * (ends_.size() + 2), all = header + bytes_.size();
  if (all > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw Error{FBX_OUT_OF_MEMORY, "more text than a string tensor holds"};
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

std::vector<int64_t> Splits(const Node& n, uint32_t operand, int64_t count) {
  const auto values = n.in(operand).values<const int64_t>();
  std::vector<int64_t> splits(values.begin(), values.end());
  if (splits.empty() || splits.front() != 0 || splits.back() != count || !std::ranges::is_sorted(splits))
    throw Error{FBX_INVALID, "are no row splits of " + std::to_string(count) + " values",
                "operand " + std::to_string(operand)};
  return splits;
}

void StoreSplits(const Node& n, uint32_t result, const std::vector<int64_t>& splits) {
  const auto count = static_cast<int64_t>(splits.size());
  std::ranges::copy(splits, n.resize(result, {&count, 1}).data<int64_t>());
}

}  // namespace fusebox::text
