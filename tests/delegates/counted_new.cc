// SPDX-License-Identifier: Apache-2.0
#include "tests/delegates/counted_new.h"

#include <cstdlib>
#include <new>

namespace fusebox::delegates_test {
std::atomic<int> allocations = 0;
}

void* operator new(std::size_t size) {
  ++fusebox::delegates_test::allocations;
  if (void* block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++fusebox::delegates_test::allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
