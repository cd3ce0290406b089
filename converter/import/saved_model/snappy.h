// SPDX-License-Identifier: Apache-2.0
// Decoder of Snappy's block format, which some writers use for the index of a bundle.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox::saved_model {

// Never makes more than 64 times the input, the most the format can, plus what a header may claim below that.
Result<std::string> DecodeSnappy(std::span<const std::byte> bytes);

}  // namespace fusebox::saved_model
