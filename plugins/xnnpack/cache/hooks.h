// SPDX-License-Identifier: Apache-2.0
// Where tests make the store die or a system call fail. Nothing of this is in a plugin: only the tests' own build of
// these sources defines FUSEBOX_CACHE_HOOKS.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstring>

namespace fusebox::cache {

#ifdef FUSEBOX_CACHE_HOOKS

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

inline void Point(const char*) {}
inline bool Fails(const char*) { return false; }

#endif

}  // namespace fusebox::cache
