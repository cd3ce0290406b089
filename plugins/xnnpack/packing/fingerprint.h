// SPDX-License-Identifier: Apache-2.0
// Fingerprints of the loaded XNNPACK library and the CPU, on which packed bytes depend besides recipe and
// weights.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/xnnpack/packing/recipes.h"

namespace fusebox::xnnpack {

// Digest of the library's build and of the packed canaries of this family and form (canary.h), computed on
// the first call. XNNPACK must be initialized. Any thread.
uint64_t FingerprintOf(Family family, Form form);
// CPU features that change packed layouts. Part of the key, so machines with different CPUs can share a
// store.
const std::string& CpuText();
// File name of the library, which states its version. Part of the key, so that versions can share a store; a
// new build under the same name supersedes the old one.
const std::string& LibraryName();
// The linker's build id of the library, else its identifier of its microkernels; hexadecimal.
const std::string& LibraryBuildText();

}  // namespace fusebox::xnnpack
