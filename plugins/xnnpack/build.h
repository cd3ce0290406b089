// SPDX-License-Identifier: Apache-2.0
// Which build of a library code or data belongs to, so that what an older one packed is not taken for its
// own.
#pragma once

#include <string>

namespace fusebox::xnnpack {

// The linker's build id of the object that is mapped at this address; empty: it has none, or no object is.
std::string BuildIdAt(const void* address);
// The same, or where it has none the size and time of its file.
std::string BuildAt(const void* address);

}  // namespace fusebox::xnnpack
