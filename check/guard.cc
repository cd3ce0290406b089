// SPDX-License-Identifier: Apache-2.0
#include "check/guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "host/base/buffer.h"

namespace fusebox::check {
namespace {

constexpr size_t kQuarantine = 2000;  // mappings; a process may have 65530
constexpr size_t kViewBytes = 1 << 14;

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Keeps the addresses of the last blocks without access and without memory. Allocates nothing: tests measure
// what is allocated.
void Retire(void* mapping, size_t bytes) {
  static std::mutex mutex;
  static std::array<std::pair<void*, size_t>, kQuarantine> retired;
  static size_t next = 0;
  if (mmap(mapping, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
      MAP_FAILED)
    return;
  const std::lock_guard lock(mutex);
  auto& [old, old_bytes] = retired[next++ % kQuarantine];
  if (old != nullptr) munmap(old, old_bytes);
  old = mapping;
  old_bytes = bytes;
}

// The last blocks, for the handler of a fault; those without access keep their addresses.
struct Known {
  std::atomic<const std::byte*> mapping;
  const std::byte *end, *data;
  size_t bytes;
  char name[32];
};
std::array<Known, 2 * kQuarantine> known;
std::atomic<size_t> next_known = 0;

}  // namespace

void DescribeAccess(const std::byte* address, const char* kind, std::span<char> text) {
  const auto holds = [&](const Known& k) {
    return k.mapping != nullptr && address >= k.mapping && address < k.end;
  };
  const Known* block = nullptr;
  for (size_t i = next_known; i-- > 0 && !block && i + known.size() >= next_known;)
    if (holds(known[i % known.size()])) block = &known[i % known.size()];
  if (!block) return;
  const auto* const begin = block->data;
  const auto* const end = begin + block->bytes;
  if (address < begin)
    snprintf(text.data(), text.size(), ": %s %zu bytes before the begin of %s", kind,
             static_cast<size_t>(begin - address), block->name);
  else if (address >= end)
    snprintf(text.data(), text.size(), ": %s %zu bytes after the end of %s", kind,
             static_cast<size_t>(address - end) + 1, block->name);
  else
    snprintf(text.data(), text.size(), ": %s of %s, which is read-only or no longer valid", kind,
             block->name);
}

Region::Region(size_t bytes, size_t alignment, Side side, uint8_t fill, std::string_view name)
    : bytes_(bytes), fill_(fill) {
  room_ = RoundUp(bytes + kOverread + alignment, PageSize());
  mapped_ = room_ + 2 * PageSize();
  void* const mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  pages_ = mapping_ + PageSize();
  Unprotect();
  const size_t last = room_ - kOverread - bytes;
  data_ = pages_ + (side == Side::kStart ? 0 : last / alignment * alignment);
  std::memset(pages_, fill, room_);
  Known& k = known[next_known++ % known.size()];
  k.end = mapping_ + mapped_;
  k.data = data_;
  k.bytes = bytes_;
  k.name[name.copy(k.name, sizeof(k.name) - 1)] = 0;
  k.mapping = mapping_;
}

Region::Region(Region&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      pages_(other.pages_),
      data_(other.data_),
      mapped_(other.mapped_),
      room_(other.room_),
      bytes_(other.bytes_),
      fill_(other.fill_) {}

Region::~Region() {
  if (mapping_ != nullptr) Retire(mapping_, mapped_);
}

void Region::Fill(uint8_t value) { std::memset(data_, value, bytes_); }
void Region::Protect() { mprotect(pages_, room_, PROT_READ); }
void Region::Unprotect() {
  if (mprotect(pages_, room_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

std::string Region::Overwritten() const {
  const auto* const end = data_ + bytes_;
  const auto changed = [&](std::byte b) { return b != static_cast<std::byte>(fill_); };
  if (const auto* at = std::find_if(end, static_cast<const std::byte*>(pages_ + room_), changed);
      at != pages_ + room_)
    return std::to_string(at - end + 1) + " bytes after its end";
  if (const auto* at =
          std::find_if(static_cast<const std::byte*>(pages_), static_cast<const std::byte*>(data_), changed);
      at != data_)
    return std::to_string(data_ - at) + " bytes before its begin";
  return {};
}

void* ViewPages::Take(size_t bytes) {
  bytes = RoundUp(bytes, alignof(std::max_align_t));
  if (pages_.empty() || used_ + bytes > pages_.back().bytes()) {
    pages_.emplace_back(std::max(kViewBytes, bytes), 64, Region::Side::kStart, 0, "a view of a callback");
    used_ = 0;
  }
  return pages_.back().data() + std::exchange(used_, used_ + bytes);
}

}  // namespace fusebox::check
