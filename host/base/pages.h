// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fusebox {

// Asks for huge pages where memory that was just allocated has room for some: they are created faster, and
// large weights are read faster from them. Small memory stays as it is.
void PreferHugePages(void* memory, size_t bytes);

}  // namespace fusebox
