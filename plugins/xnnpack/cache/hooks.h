// SPDX-License-Identifier: Apache-2.0
// Limits, and points where tests kill the process or make a system call fail. Tests compile with
// FUSEBOX_CACHE_HOOKS; without it, limits are constants and the points do nothing.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace fusebox::cache {

struct Tuning {
  // Of segments on disk. The least recently used are removed first, never those in use.
  uint64_t max_bytes = 8ull << 30;
  uint64_t min_free_bytes = 64ull << 20;  // that a build leaves on the disk
  int build_wait_ms = 10'000;             // for another process that packs the same weights
  bool durable = true;                    // fsync; without it a power cut may lose the file, never corrupt it
};

#ifdef FUSEBOX_CACHE_HOOKS

inline Tuning tuning;

struct Hooks {
  const char* kill_at = nullptr;  // the name of a Point: SIGKILL there,
  int kill_count = 1;             // when it is reached for this time
  const char* fail = nullptr;     // the name of a system call that fails with
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
