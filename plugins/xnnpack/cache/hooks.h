// SPDX-License-Identifier: Apache-2.0
// Where a test lets a process die, lets a system call fail, and how long things take. Nothing but constants unless whoever
// compiles these sources defines FUSEBOX_CACHE_HOOKS.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace fusebox::cache {

struct Tuning {
  uint64_t max_bytes = 8ull << 30;        // of segments on disk; the least recently used go first, never those in use
  uint64_t min_free_bytes = 64ull << 20;  // that a build leaves on the disk
  int build_wait_ms = 10'000;             // for another process that packs the same
  bool durable = true;  // fsync; without it a power cut may cost the file, never its correctness
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
