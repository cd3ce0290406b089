// SPDX-License-Identifier: Apache-2.0
// Canaries: small ops that are packed to see how this build of XNNPACK packs on this CPU.
#pragma once

#include <cstdint>

#include "plugins/xnnpack/recipes.h"

namespace fusebox::xnnpack {

// Digest of the seeds, sizes and bytes that the family's small ops of this form are packed into; of their
// status, where this build has no such op. XNNPACK is initialized. Costs some 20 us.
uint64_t PackCanary(Family family, Form form);

}  // namespace fusebox::xnnpack
