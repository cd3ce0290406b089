// SPDX-License-Identifier: Apache-2.0
// A trial of XNNPACK's products of floats by 4-bit weights. The kernels of 2024-11 are wrong for some numbers
// of rows on some CPUs: they read parameters of more rows than XNNPACK keeps.
#pragma once

#include <cstddef>

namespace fusebox::xnnpack {

// Returns whether products of `rows` rows (0: of any number) by 4-bit weights are correct on this CPU.
// `blocks`: a scale per block of weights instead of one per channel. The first call takes 0.1 to 2 ms.
bool MultipliesNibbles(bool blocks, size_t rows);

}  // namespace fusebox::xnnpack
