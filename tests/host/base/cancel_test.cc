// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "host/base/cancel.h"

namespace fusebox {
namespace {

using std::chrono::milliseconds;

TEST(CancelScope, EndsWorkOnceItsFlagIsSet) {
  EXPECT_TRUE(CheckCancelled());
  std::atomic<bool> flag = false;
  const CancelScope scope({.flag = &flag});
  EXPECT_TRUE(CheckCancelled());
  flag = true;
  EXPECT_EQ(CheckCancelled().error().code, Code::kCancelled);
}

TEST(CancelScope, EndsWorkAtItsTime) {
  {
    const CancelScope scope({.end = Limits::Clock::now()});
    EXPECT_EQ(CheckCancelled().error().code, Code::kCancelled);
  }
  EXPECT_TRUE(CheckCancelled());
}

TEST(CancelScope, KeepsTheLimitsOfTheScopeAround) {
  std::atomic<bool> flag = true;
  const CancelScope outer({.flag = &flag});
  const CancelScope inner({.end = Limits::After(milliseconds(1'000'000))});
  EXPECT_FALSE(CheckCancelled());
  flag = false;
  EXPECT_TRUE(CheckCancelled());
  const CancelScope late({.end = Limits::Clock::now()});
  const CancelScope later({.end = Limits::After(milliseconds(1'000'000))});
  EXPECT_FALSE(CheckCancelled()) << "the earlier end holds";
}

TEST(Limits, AfterAnyTime) {
  EXPECT_EQ(Limits::After(milliseconds(0)), Limits::kNever);
  EXPECT_GT(Limits::After(milliseconds(INT64_MAX)), Limits::Clock::now());
}

}  // namespace
}  // namespace fusebox
