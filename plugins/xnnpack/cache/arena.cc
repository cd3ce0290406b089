// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/segment_format.h"

namespace fusebox::cache {
namespace {

// Files are mapped in huge pages; a small model needs little private memory.
constexpr uint64_t kSmallestFileStep = 4 << 20;
constexpr uint64_t kSmallestStep = 256 << 10;
constexpr uint64_t kLargestStep = 64 << 20;
constexpr uint64_t kHugePage = 2 << 20;

uint64_t PageSize() {
  static const uint64_t size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::max(size, tuning.page_size);
}

}  // namespace

Arena::Arena(int fd) : fd_(fd), used_(in_file() ? kFirstBlob : 0), allocated_(used_) {}

Arena::Piece::~Piece() {
  if (base) munmap(base, length);
}

std::optional<Arena::Region> Arena::Reserve(size_t size, Note& why) {
  if (size > SIZE_MAX / 4) {
    why = {"no-memory", "a blob of " + std::to_string(size) + " bytes", ENOMEM};
    return std::nullopt;
  }
  const uint64_t capacity = AlignUp(std::max<size_t>(size, 1), kBlobAlignment);
  const uint64_t alignment = AlignmentOf(size);
  uint64_t at = AlignUp(used_, alignment);
  if (!current_ || at + capacity > current_->file_offset + current_->length) {
    if (!Grow(at + capacity, why)) return std::nullopt;
    at = std::max(at, current_->file_offset);  // private memory starts over
  }
  used_ = at + capacity;
  Region region{current_->base + (at - current_->file_offset), capacity, at, current_};
  Populate(region);
  return region;
}

// Creates the pages by writing zeros, in whole huge pages: file systems with large folios keep them large,
// and every process maps each with one fault. Page faults would create single pages, for this and all later
// processes.
void Arena::Fill(uint64_t end) {
  static std::byte zeros[kHugePage];
  end = std::min(AlignUp(end, kHugePage), current_->file_offset + current_->length);
  while (filled_ < end) {
    const auto part = std::span(zeros).first(std::min(kHugePage - filled_ % kHugePage, end - filled_));
    // Never again after a failure: packed data follows.
    filled_ = WriteAt(fd_, part, filled_) ? filled_ + part.size() : UINT64_MAX;
  }
}

// Creates all pages to be written in few calls instead of one fault each. Remaining pages are created by
// faults.
void Arena::Populate(const Region& region) {
  const uint64_t begin = region.offset / PageSize() * PageSize();
  const uint64_t end = std::min(AlignUp(region.offset + region.capacity, PageSize()),
                                current_->file_offset + current_->length);
  if (in_file()) Fill(end);
#ifdef MADV_POPULATE_WRITE
  madvise(current_->base + (begin - current_->file_offset), end - begin, MADV_POPULATE_WRITE);
#endif
}

bool Arena::Grow(uint64_t end, Note& why) {
  const bool memory = !in_file();
  const uint64_t step = std::clamp(allocated_, memory ? kSmallestStep : kSmallestFileStep, kLargestStep);
  const uint64_t from = memory ? AlignUp(allocated_, PageSize()) : used_ / PageSize() * PageSize();
  // Private memory need not be contiguous: only the new size counts.
  const uint64_t least = memory ? from + (end - used_) + kBigBlobAlignment : end;
  const uint64_t most = AlignUp(std::max(least, allocated_ + step), memory ? PageSize() : kHugePage);
  for (const uint64_t target : {most, AlignUp(least, PageSize())}) {
    if (!Extend(target, why) || !Map(from, target, why)) continue;
    if (memory) used_ = from;
    return true;
  }
  return false;
}

bool Arena::Extend(uint64_t end, Note& why) {
  if (!in_file() || end <= allocated_) return true;
  const uint64_t more = end - allocated_;
  int error = 0;
  if (!WithinFileLimit(end)) {
    error = EFBIG;
  } else {
    struct statvfs disk;
    const bool known = fstatvfs(fd_, &disk) == 0;
    if (known && disk.f_bavail * disk.f_frsize < more + tuning.min_free_bytes) {
      error = ENOSPC;
    } else {
      int result;
      do {
        // posix_fallocate writes every page if the file system lacks support; fallocate fails.
        result = Fails("fallocate")
                     ? -1
                     : fallocate(fd_, 0, static_cast<off_t>(allocated_), static_cast<off_t>(more));
      } while (result != 0 && errno == EINTR);
      if (result != 0) error = errno;
    }
  }
  if (error != 0) {
    why = ErrnoNote(error, std::to_string(more) + " more bytes cannot be allocated", "cannot-allocate");
    return false;
  }
  Point("grown");
  allocated_ = end;
  return true;
}

bool Arena::Map(uint64_t from, uint64_t end, Note& why) {
  const int flags = in_file() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const base = Fails("mmap") ? MAP_FAILED
                                   : mmap(nullptr, end - from, PROT_READ | PROT_WRITE, flags, fd_,
                                          in_file() ? static_cast<off_t>(from) : 0);
  if (base == MAP_FAILED) {
    why = ErrnoNote(errno, std::to_string(end - from) + " bytes cannot be mapped", "cannot-map");
    return false;
  }
  current_ = std::make_shared<Piece>();
  current_->base = static_cast<std::byte*>(base);
  current_->length = end - from;
  current_->file_offset = from;
  if (!in_file()) {
    allocated_ = end;
    // Products of one row read all weights from memory. Measured: they take 0.82 of the time, packing 0.62.
    madvise(base, end - from, MADV_HUGEPAGE);
  }
  std::erase_if(pieces_, [](const auto& piece) { return piece.expired(); });
  pieces_.push_back(current_);
  return true;
}

void Arena::Rewind(const Region& region) {
  if (region.piece == current_ && region.offset + region.capacity == used_) used_ = region.offset;
}

void Arena::Trim(const Region& region, size_t size) {
  if (region.piece == current_ && region.offset + region.capacity == used_)
    used_ = region.offset + AlignUp(std::max<size_t>(size, 1), kBlobAlignment);
}

void Arena::Seal() {
  for (const auto& weak : pieces_)
    if (const auto piece = weak.lock()) mprotect(piece->base, piece->length, PROT_READ);
  current_.reset();
}

}  // namespace fusebox::cache
