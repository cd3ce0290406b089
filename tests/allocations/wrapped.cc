// SPDX-License-Identifier: Apache-2.0
// Replacements of malloc and the other functions that the linker wraps (--wrap).
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

namespace fusebox::allocations {
bool Fails(const void* caller);
}

extern "C" {
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
int __real_posix_memalign(void**, size_t, size_t);
void* __real_mmap(void*, size_t, int, int, int, off_t);

static bool Fails() { return fusebox::allocations::Fails(__builtin_return_address(0)); }

void* __wrap_malloc(size_t size) {
  if (!Fails()) return __real_malloc(size);
  errno = ENOMEM;
  return nullptr;
}
void* __wrap_calloc(size_t count, size_t size) {
  if (!Fails()) return __real_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}
int __wrap_posix_memalign(void** block, size_t alignment, size_t size) {
  return Fails() ? ENOMEM : __real_posix_memalign(block, alignment, size);
}
void* __wrap_mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (!Fails()) return __real_mmap(address, length, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
}
