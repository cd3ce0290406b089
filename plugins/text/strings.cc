// SPDX-License-Identifier: Apache-2.0
#include "plugins/text/strings.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fusebox::text {

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
    throw Error{FBX_OUT_OF_MEMORY, "strings too large for a string tensor"};
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
    throw Error{FBX_INVALID, "are not row splits of " + std::to_string(count) + " values",
                "operand " + std::to_string(operand)};
  return splits;
}

void StoreSplits(const Node& n, uint32_t result, const std::vector<int64_t>& splits) {
  const auto count = static_cast<int64_t>(splits.size());
  std::ranges::copy(splits, n.resize(result, {&count, 1}).data<int64_t>());
}

}  // namespace fusebox::text
