// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>

#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

constexpr size_t kEndSize = 22;
constexpr size_t kEntrySize = 46;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEntryMark = 0x02014b50;
constexpr uint32_t kFileMark = 0x04034b50;

template <class T>
T At(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void Put(std::span<std::byte> bytes, size_t at, uint32_t value) { std::memcpy(bytes.data() + at, &value, 4); }

// The last end record that begins at `from` or later; a comment of up to 64 KiB may follow it.
size_t FindEnd(std::span<const std::byte> file, size_t from) {
  if (file.size() < from + kEndSize) return file.size();
  const size_t lowest =
      std::max(from, file.size() - kEndSize - std::min<size_t>(file.size() - kEndSize, 65535));
  // memrchr, since nearly every file has no zip and is searched to the end of the range.
  const auto* begin = reinterpret_cast<const char*>(file.data());
  for (size_t past = file.size() - kEndSize + 1; past > lowest;) {
    const void* mark = memrchr(begin + lowest, 'P', past - lowest);
    if (!mark) break;
    const auto at = static_cast<size_t>(static_cast<const char*>(mark) - begin);
    if (At<uint32_t>(file, at) == kEndMark && at + kEndSize + At<uint16_t>(file, at + 20) == file.size())
      return at;
    past = at;
  }
  return file.size();
}

}  // namespace

Buffer ReadAppendedZip(const Buffer& file, size_t from) {
  const std::span<const std::byte> bytes = file.bytes();
  const size_t end = FindEnd(bytes, from);
  if (end == bytes.size()) return {};
  const size_t count = At<uint16_t>(bytes, end + 10);
  const size_t size = At<uint32_t>(bytes, end + 12);
  const auto stated = static_cast<int64_t>(At<uint32_t>(bytes, end + 16));
  if (size > end || count == 0) return {};
  const size_t directory = end - size;
  // Some writers count offsets from the start of the zip, some from the start of the file that it was
  // appended to.
  const int64_t shift = static_cast<int64_t>(directory) - stated;
  std::vector<size_t> entries;
  int64_t start = std::numeric_limits<int64_t>::max();
  for (size_t at = directory; entries.size() < count;) {
    if (at + kEntrySize > end || At<uint32_t>(bytes, at) != kEntryMark) return {};
    entries.push_back(at);
    start = std::min(start, static_cast<int64_t>(At<uint32_t>(bytes, at + 42)) + shift);
    at += kEntrySize + At<uint16_t>(bytes, at + 28) + At<uint16_t>(bytes, at + 30) +
          At<uint16_t>(bytes, at + 32);
  }
  if (start < 8 || start + 4 > static_cast<int64_t>(directory)) return {};
  const auto front = static_cast<size_t>(start);
  if (At<uint32_t>(bytes, front) != kFileMark) return {};
  Buffer zip = file.Slice(front, bytes.size() - front);
  if (shift == start) return zip;
  return Buffer::Make(zip.size(), [&](std::span<std::byte> out) {
    std::memcpy(out.data(), zip.data(), zip.size());
    for (const size_t at : entries) {
      const int64_t offset = static_cast<int64_t>(At<uint32_t>(bytes, at + 42)) + shift - start;
      Put(out, at - front + 42, static_cast<uint32_t>(offset));
    }
    Put(out, end - front + 16, static_cast<uint32_t>(directory - front));
  });
}

}  // namespace fusebox::tflite
