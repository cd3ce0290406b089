// SPDX-License-Identifier: Apache-2.0
// Decoder of Snappy's block format, used by some writers for bundle indexes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox::saved_model {

// The output is at most 64 times the input, the maximum of the format; larger claims are rejected.
Result<std::string> DecodeSnappy(std::span<const std::byte> bytes);

}  // namespace fusebox::saved_model
