// SPDX-License-Identifier: Apache-2.0
// Only one process packs a build: it locks one byte of the file `building`, at an offset derived from the
// first key. The lock ends with the process.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::cache {
namespace {

constexpr int kPollMilliseconds = 5;

enum class Try { kTaken, kBusy, kUnsupported };

Try LockByte(int fd, uint64_t place) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(place);
  lock.l_len = 1;
  if (!Fails("turn") && fcntl(fd, F_OFD_SETLK, &lock) == 0) return Try::kTaken;
  return errno == EAGAIN || errno == EACCES || errno == EINTR ? Try::kBusy : Try::kUnsupported;
}

int64_t Milliseconds() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::shared_ptr<const void> Store::LockBuild(const Digest& first) {
  const uint64_t place = first.low >> 2;
  // Sessions of one process share the lock: they see each other's blobs at once.
  const auto own = [&]() -> std::shared_ptr<const void> {
    const std::lock_guard lock(locks_mutex_);
    std::erase_if(locks_, [](const auto& item) { return item.second.expired(); });
    const auto at = locks_.find(place);
    return at == locks_.end() ? nullptr : at->second.lock();
  };
  if (auto lock = own()) return lock;
  auto file = std::make_shared<Fd>(
      openat(dirs_->side.get(), "building", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  const int64_t end = Milliseconds() + tuning.build_wait_ms;
  for (;;) {
    // Without such locks, several processes may pack the same, and one result is kept.
    if (!*file || LockByte(file->get(), place) != Try::kBusy) break;
    if (auto lock = own()) return lock;
    if (Milliseconds() >= end) return nullptr;
    usleep(kPollMilliseconds * 1000);
  }
  Point("turn");
  const std::lock_guard lock(locks_mutex_);
  locks_[place] = file;
  return file;
}

}  // namespace fusebox::cache
