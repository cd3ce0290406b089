// SPDX-License-Identifier: Apache-2.0
// Memory that shows wrong accesses: pages without access around each block, and after its life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::check {

// A block between two pages without access. Any access beyond them ends the process with SIGSEGV.
class Region {
 public:
  // kStart: the block begins behind the page without access. kEnd: it ends `kOverread` bytes before the next
  // one, or up to 63 bytes more, because the block is aligned.
  enum class Side { kStart, kEnd };

  // All other bytes of its pages have the value `fill`. `alignment`: a power of 2, at most 64. `name`: for
  // the report of a fault.
  Region(size_t bytes, size_t alignment, Side side, uint8_t fill, std::string_view name);
  Region(Region&&) noexcept;
  Region& operator=(Region&&) = delete;
  ~Region();  // the addresses stay without access for a while

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Fill(uint8_t value);
  void Protect();    // read-only
  void Unprotect();  // read and write
  // Returns the first changed byte outside of the block, "3 bytes after the end of it", or an empty string.
  std::string Overwritten() const;

 private:
  std::byte *mapping_, *pages_, *data_;  // with the pages without access; without; the block
  size_t mapped_, room_, bytes_;
  uint8_t fill_;
};

// Appends to `text` which block an address without access belongs to: ": write 4 bytes after the end of
// result 0"; nothing if it belongs to none. For a signal handler. `kind`: "read", "write" or "access".
void DescribeAccess(const std::byte* address, const char* kind, std::span<char> text);

// Views for one callback. They are copies in pages that lose access when it returns, so that a kept pointer
// to one ends the process.
class ViewPages {
 public:
  ViewPages() = default;
  ViewPages(const ViewPages&) = delete;

  void* Take(size_t bytes);
  template <class T>
  T* Make(const T& value) {
    return new (Take(sizeof(T))) T(value);
  }
  template <class T>
  T* Array(const T* values, size_t count) {
    T* const out = static_cast<T*>(Take((count + 1) * sizeof(T)));
    for (size_t i = 0; i < count; ++i) out[i] = values[i];
    return out;
  }

 private:
  std::vector<Region> pages_;
  size_t used_ = 0;
};

}  // namespace fusebox::check
