// SPDX-License-Identifier: Apache-2.0
// Identifies the build of a library, so that data packed by another build is not used.
#pragma once

#include <string>

namespace fusebox::xnnpack {

// Returns the linker's build id of the object mapped at this address, or an empty string if there is none, or
// no object.
std::string BuildIdAt(const void* address);
// Same; without build id, size and time of the file.
std::string BuildAt(const void* address);

}  // namespace fusebox::xnnpack
