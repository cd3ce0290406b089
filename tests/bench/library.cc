// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/library.h"

#include <dlfcn.h>

#include <stdexcept>

namespace fusebox::bench {

void* OpenLibrary(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

void* FindSymbol(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (!symbol) throw std::runtime_error(dlerror());
  return symbol;
}

}  // namespace fusebox::bench
