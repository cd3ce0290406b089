// SPDX-License-Identifier: Apache-2.0
// Running a partition allocates nothing once it is prepared.
#include <gtest/gtest.h>

#include "tests/delegates/counted_new.h"
#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

int SteadyAllocations(Session& session) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(session.Run());
  const int before = allocations;
  const bool ran = session.Run().has_value();
  const int steady = allocations - before;
  EXPECT_TRUE(ran);
  return steady;
}

TEST(Allocation, NoneWhereADelegateRunsPartitions) {
  const auto session = SessionOf(Open(Chain(), {ToyThat()}));
  EXPECT_EQ(Output(*session, {3, 4}), (std::vector<float>{9, 40}));
  EXPECT_EQ(SteadyAllocations(*session), 0);
}

TEST(Allocation, NoneWhereADelegateHasDeclined) {
  for (const char* lie : {"compile", "prepare", "invoke"}) {
    const auto session = SessionOf(Open(Chain(), {ToyThat(lie)}));
    EXPECT_EQ(Output(*session, {3, 4}), (std::vector<float>{9, 40}));
    EXPECT_EQ(SteadyAllocations(*session), 0) << lie;
  }
}

}  // namespace
}  // namespace fusebox::delegates_test
