// SPDX-License-Identifier: Apache-2.0
// An attention layer of Keras 3, with seeded weights.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/status.h"

namespace fusebox::test_models {

// x [?,steps,8] -> MultiHeadAttention of Keras 3 on itself (2 heads of 4), residual Add -> "output"
// [?,steps,8].
Status WriteKeras3Attention(const std::string& dir, uint64_t seed);

}  // namespace fusebox::test_models
