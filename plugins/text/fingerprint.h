// SPDX-License-Identifier: Apache-2.0
// FarmHash's 64-bit fingerprint, used by TensorFlow's to_hash_bucket_fast.
#pragma once

#include <cstdint>
#include <string_view>

namespace fusebox::text {

uint64_t Fingerprint(std::string_view text);

}  // namespace fusebox::text
