// SPDX-License-Identifier: Apache-2.0
// FarmHash's fingerprint of 64 bits, which TensorFlow's to_hash_bucket_fast is made of.
#pragma once

#include <cstdint>
#include <string_view>

namespace fusebox::text {

uint64_t Fingerprint(std::string_view text);

}  // namespace fusebox::text
