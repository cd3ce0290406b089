// SPDX-License-Identifier: Apache-2.0
// Forks: tells a process that it is the child of one that used the library. Threads do not exist in a child,
// so that whatever waits for one must be made again.
#pragma once

#include <cstdint>

namespace fusebox {

// Number of forks between the process that first called it and this one. Any thread.
uint32_t Forks();

}  // namespace fusebox
