// SPDX-License-Identifier: Apache-2.0
#include "host/base/shared_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusebox {
namespace {

using ::testing::ElementsAre;

TEST(SharedArray, HoldsWhatItIsMadeOf) {
  const std::vector<float> values = {1, 2, 3};
  const SharedArray<float> copy = values;
  EXPECT_THAT(copy, ElementsAre(1, 2, 3));
  EXPECT_NE(copy.data(), values.data());
  EXPECT_EQ(copy, (SharedArray<float>{1, 2, 3}));
  EXPECT_NE(copy, (SharedArray<float>{1, 2, 4}));
  EXPECT_NE(copy, (SharedArray<float>{1, 2}));
}

TEST(SharedArray, OfNoneIsEmptyHoweverItIsMade) {
  EXPECT_TRUE(SharedArray<float>().empty());
  EXPECT_EQ(SharedArray<float>(), SharedArray<float>(std::vector<float>()));
  EXPECT_EQ(SharedArray<float>(), (SharedArray<float>{}));
  EXPECT_EQ(SharedArray<float>(), SharedArray<float>(Buffer::Copy({})));
}

TEST(SharedArray, SharesTheBufferAndKeepsIt) {
  SharedArray<int64_t> kept;
  {
    const Buffer buffer = Buffer::Of<int64_t>(std::vector<int64_t>{7, 8});
    const SharedArray<int64_t> view(buffer);
    EXPECT_EQ(view.data(), buffer.As<int64_t>().data());
    kept = view;
    EXPECT_EQ(kept.data(), view.data());
  }
  EXPECT_THAT(kept, ElementsAre(7, 8));
}

}  // namespace
}  // namespace fusebox
