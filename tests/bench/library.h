// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fusebox::bench {

// dlopen and dlsym, throwing std::runtime_error.
void* OpenLibrary(const std::string& path);
void* FindSymbol(void* library, const char* name);

}  // namespace fusebox::bench
