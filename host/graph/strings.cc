// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "host/graph/npy.h"

namespace fusebox {

Buffer PackStrings(const std::vector<std::string>& strings) {
  const size_t header = 4 * (strings.size() + 2);
  size_t size = header;
  for (const std::string& text : strings) size += text.size();
  FUSEBOX_CHECK(size <= INT32_MAX);
  return Buffer::Make(size, [&](std::span<std::byte> out) {
    const auto put = [&](size_t word, size_t value) {
      const auto number = static_cast<int32_t>(value);
      std::memcpy(out.data() + 4 * word, &number, 4);
    };
    put(0, strings.size());
    size_t at = header;
    for (size_t i = 0; i < strings.size(); ++i) {
      put(1 + i, at);
      std::memcpy(out.data() + at, strings[i].data(), strings[i].size());
      at += strings[i].size();
    }
    put(1 + strings.size(), at);
  });
}

Result<std::vector<std::string_view>> StringsIn(const Buffer& data) {
  const auto word = [&](size_t i) {
    int32_t value;
    std::memcpy(&value, data.data() + 4 * i, 4);
    return value;
  };
  if (data.size() < 4) return Invalid("string tensor has no count");
  const int32_t count = word(0);
  const uint64_t header = 4 * (static_cast<uint64_t>(count) + 2);
  if (count < 0 || header > data.size()) return Invalid("string tensor has an invalid count");
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t begin = word(1 + i);
    const int64_t end = word(2 + i);
    if (begin < static_cast<int64_t>(header) || end < begin || end > static_cast<int64_t>(data.size())) {
      return Invalid("string tensor has invalid offsets");
    }
    strings.emplace_back(reinterpret_cast<const char*>(data.data()) + begin,
                         static_cast<size_t>(end - begin));
  }
  return strings;
}

Result<std::vector<std::string>> UnpackStrings(const Buffer& data) {
  FUSEBOX_ASSIGN(const auto strings, StringsIn(data));
  return std::vector<std::string>(strings.begin(), strings.end());
}

}  // namespace fusebox
