// SPDX-License-Identifier: Apache-2.0
#include "host/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace fusebox {

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "fusebox: internal error: %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace fusebox
