// SPDX-License-Identifier: Apache-2.0
// Identifies the build of a library, so that data packed by another build is not used.
#pragma once

#include <string>

namespace fusebox::xnnpack {

// Returns the linker's build id of the object mapped at this address, or an empty string if there is none, or
// no object.
std::string BuildIdAt(const void* address);
// Returns the file name of that object, without its folder; empty for the executable.
std::string FileNameAt(const void* address);
// Same as BuildIdAt; without build id, size and time of the file.
std::string BuildAt(const void* address);

}  // namespace fusebox::xnnpack
