// SPDX-License-Identifier: Apache-2.0
// Recurrent layers behind a Masking layer, as Keras 2 writes them.
#pragma once

#include "samples/models/models.h"

namespace fusebox::samples {

// Whether steps whose features are all nought are left out, and what is given for them: what the step before
// gave, or zeros.
enum class Masks { kNone, kHold, kZeros };

// WriteRecurrent with the mask as the last argument of the layer's function.
Status WriteMaskedRecurrent(const std::string& dir, uint64_t seed, const RecurrentOptions& options,
                            Masks masks);

}  // namespace fusebox::samples
