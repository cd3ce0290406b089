// SPDX-License-Identifier: Apache-2.0
// Canaries: small ops packed to detect how this build of XNNPACK packs on this CPU.
#pragma once

#include <cstdint>

#include "plugins/xnnpack/packing/recipes.h"

namespace fusebox::xnnpack {

// Digest of the seeds, sizes and bytes that the family's canaries of this form pack to; of their status if
// this build does not support them. XNNPACK must be initialized. Takes about 20 us.
uint64_t PackCanary(Family family, Form form);

}  // namespace fusebox::xnnpack
