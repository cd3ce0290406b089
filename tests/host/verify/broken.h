// SPDX-License-Identifier: Apache-2.0
// Kernels linked into the test, each correct or with a known fault.
#pragma once

#include <fusebox/abi/plugin.h>

// b.norm {fault} (x [n,4]) -> x / sqrt(mean(x^2) + 0.001), row by row. Faults:
//   none, epsilon (left out), tail (the last element is wrong), axis (mean over rows), leak (adds what earlier calls left behind),
//   shape (gives [n]), fail (invoke fails)
// b.product {fault} (x [n,3], w [3,3]) -> x w. Faults: none, transposed.
// b.inverse {fault} (x) -> 1 / x. Faults: none, clamp (1e9 in place of infinity).
// b.wave {off} (x) -> sin(1000 x (1 + off 2^-24)), and of whole numbers, whose product f32 does not round,
// sin(1000 x). b.optional (x, -, y) -> x + y; fails where operand 1 is there.
extern const fbx_entry kBroken;
