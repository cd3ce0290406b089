// SPDX-License-Identifier: Apache-2.0
// The one table of what threads and caches cost, by which products, convolutions and sequences are cut into
// parts. Measured on x86-64 cores of 2018 to 2024. Results depend on none of these numbers.
//
// Work is counted in units of one element that is moved or mapped. A multiply-add of f32 counts as one, too:
// it is faster, but its operands have to be fetched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fusebox::math {

// Multiply-adds of narrower types in one unit.
inline constexpr int64_t kWordsPerUnit = 16;
inline constexpr int64_t kBytesPerUnit = 64;

// Threads, in units of work.
inline constexpr int64_t kTaskWork = int64_t{1} << 14;      // handing out a task costs as much
inline constexpr int64_t kAwakeWork = int64_t{1} << 16;     // splitting a step, while all threads are awake
inline constexpr int64_t kParallelWork = int64_t{1} << 18;  // waking a thread for many steps
inline constexpr int64_t kLoneWork = int64_t{1} << 23;  // waking a thread for one product among serial steps
inline constexpr double kPartitionWork = 4e5;           // waking a thread for a delegate's partition
inline constexpr double kPartitionOpWork = 5e4;         // splitting each of its ops

// Caches, in bytes: the shares of a core's L2 cache, and of the last level, that a part may fill.
inline constexpr int64_t kRowsBytes = int64_t{64} << 10;      // rows of A, while B is read
inline constexpr int64_t kInputBytes = int64_t{256} << 10;    // the same of a convolution's input in f32
inline constexpr int64_t kPatchesBytes = int64_t{96} << 10;   // copies of its patches
inline constexpr int64_t kWeightsBytes = int64_t{256} << 10;  // a group of B, while A is read
inline constexpr int64_t kSumsBytes = int64_t{256} << 10;     // sums that several products add to
inline constexpr int64_t kBlocksBytes = int64_t{512} << 10;   // inputs and products of minimal filtering
inline constexpr int64_t kStepsBytes = int64_t{4} << 20;  // input products of the next steps of a sequence

// Grain of ParallelFor whose steps have this much work each.
inline size_t Grain(int64_t work) {
  return static_cast<size_t>(std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, work)));
}

}  // namespace fusebox::math
