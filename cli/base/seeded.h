// SPDX-License-Identifier: Apache-2.0
// Pseudo-random inputs, equal on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

// A value of that type, unknown dimensions 1. Depends only on type, seed and input index. Has no data unless
// it is a string: FillSeeded writes it to memory of the session, which may be too small.
//
// The generator is SplitMix64, starting at (seed << 20) + index: per number, state += 0x9e3779b97f4a7c15; the
// mixed state is r.
//   floats      in [-1, 1): r's top 24 bits (f64: 53; f16: 11; bf16: 8) / 2^23 - 1 and so on; complex: real, then imaginary
//   8 and 16 bits  the whole range; 4 and 2 bits too
//   32 and 64 bits 0 to 3, valid as an index
//   bool        alternating, true first;      string: "s0" to "s3"
Result<Tensor> SeededValue(const Type& declared, uint64_t seed, uint64_t index);
void FillSeeded(const Type& type, uint64_t seed, uint64_t index, std::span<std::byte> memory);

}  // namespace fusebox::cli
