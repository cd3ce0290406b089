// SPDX-License-Identifier: Apache-2.0
// What packed bytes depend on besides recipe and weights: the XNNPACK library that is loaded, and this CPU.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/xnnpack/recipes.h"

namespace fusebox::xnnpack {

// Of the library's build and of what the canaries of this family and form are packed into. XNNPACK is initialised. A
// canary is packed when it is first asked for. Any thread.
uint64_t FingerprintOf(Family family, Form form);
// The CPU, as far as it decides layouts: what must live side by side in a store that several machines use.
const std::string& CpuText();
// The linker's build id of the library, else its own identifier of its microkernels; in hexadecimal.
const std::string& LibraryBuildText();

}  // namespace fusebox::xnnpack
