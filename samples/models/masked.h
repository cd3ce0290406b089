// SPDX-License-Identifier: Apache-2.0
// Recurrent layers after a Masking layer, as in Keras 2.
#pragma once

#include "samples/models/models.h"

namespace fusebox::samples {

// Steps with only zero features: not skipped (kNone), or skipped, with the output of the previous step
// (kHold) or zeros (kZeros).
enum class Masks { kNone, kHold, kZeros };

// WriteRecurrent with the mask as the last argument of the layer's function.
Status WriteMaskedRecurrent(const std::string& dir, uint64_t seed, const RecurrentOptions& options,
                            Masks masks);

}  // namespace fusebox::samples
