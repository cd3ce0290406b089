// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "host/run/run.h"

namespace fusebox::run {
namespace {

TEST(Threads, JoinChunksOfHugeLoops) {
  Threads threads(2);
  std::atomic<size_t> elements = 0;
  const auto count = [](void* context, size_t begin, size_t end, uint32_t) noexcept {
    *static_cast<std::atomic<size_t>*>(context) += end - begin;
  };
  threads.ParallelFor(size_t{1} << 40, 1, count, &elements);
  EXPECT_EQ(elements, size_t{1} << 40);
}

}  // namespace
}  // namespace fusebox::run
