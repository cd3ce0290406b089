// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tests/bench/decoder.h"

namespace fusebox::decoder_test {

// The logits of the last of these tokens, by definition, in f64: all tokens are computed, without a cache.
std::vector<double> Logits(const bench::Decoder& decoder, const std::vector<int32_t>& tokens);

}  // namespace fusebox::decoder_test
