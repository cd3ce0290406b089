// SPDX-License-Identifier: Apache-2.0
// Limits, and fault injection for tests: points that kill the process, failing system calls. Without
// FUSEBOX_CACHE_HOOKS, limits are constants and points do nothing.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace fusebox::cache {

struct Tuning {
  // Limit for segments on disk. The least recently used are removed first, never those in use.
  uint64_t max_bytes = 8ull << 30;
  uint64_t min_free_bytes = 64ull << 20;  // a build leaves this free on the disk
  int build_wait_ms = 10'000;             // wait for another process that packs the same weights
  bool durable = true;                    // fsync; otherwise a power cut may lose the file, never corrupt it
  uint64_t page_size = 0;                 // of private memory and mapped files; 0: the system's
};

#ifdef FUSEBOX_CACHE_HOOKS

inline Tuning tuning;

struct Hooks {
  const char* kill_at = nullptr;  // name of the Point to send SIGKILL at
  int kill_count = 1;             // on this visit
  const char* fail = nullptr;     // name of a system call to fail
  int error = 0;
};
inline Hooks hooks;

inline void Point(const char* name) {
  if (hooks.kill_at && std::strcmp(hooks.kill_at, name) == 0 && --hooks.kill_count == 0) raise(SIGKILL);
}
inline bool Fails(const char* call) {
  if (!hooks.fail || std::strcmp(hooks.fail, call) != 0) return false;
  errno = hooks.error;
  return true;
}

#else

inline constexpr Tuning tuning;
inline void Point(const char*) {}
inline bool Fails(const char*) { return false; }

#endif

}  // namespace fusebox::cache
