// SPDX-License-Identifier: Apache-2.0
// A plugin linked into the test, with small kernels whose results are easy to recognize.
#pragma once

#include <fusebox/abi/plugin.h>

// Custom ops, f32 by default:
//   test.twice (x) -> 2x                     test.inplace (x) -> x + 1, may share memory
//   test.nonzero (x) -> i64 indices of nonzero elements, sized at run time
//   test.iota (i32 n) -> 0..n-1, its shape depends on the value of n
//   test.append (x[n]) -> x followed by its sum, [n+1]
//   test.shorter (x[n]) {than} -> bool, n < than
//   test.count (x) -> x + number of runs of the plan (persistent memory), via scratch
//   test.parallel (x) -> x + 1 computed in nested parallel loops
//   test.fail (x) -> fails with "no luck today"        test.unsized (x) -> i64[?], not resized
//   test.made (x) {fail, poll} -> x; cannot be initialized with fail = 1, polls until cancelled with poll = 1
// DEQUANTIZE (i8 x[n]) -> x times the number of runs of all DEQUANTIZE
// UNIDIRECTIONAL_SEQUENCE_RNN (x, -, -, -, state) -> state after state += x.
extern const fbx_entry kTestPlugin;
extern int test_made;  // instances of test.made
