// SPDX-License-Identifier: Apache-2.0
#include "host/base/inline_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <span>

namespace fusebox {
namespace {

using testing::ElementsAre;
using Few = InlineVector<int64_t, 3>;

TEST(InlineVector, HoldsFewAndManyAlike) {
  Few values;
  EXPECT_TRUE(values.empty());
  for (int64_t i = 0; i < 40; ++i) {
    values.push_back(i);
    ASSERT_EQ(values.size(), static_cast<size_t>(i) + 1);
    ASSERT_EQ(values.back(), i);
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), i * (i + 1) / 2);
  }
  values.resize(2);
  EXPECT_THAT(values, ElementsAre(0, 1));
  values.resize(5, 7);
  EXPECT_THAT(values, ElementsAre(0, 1, 7, 7, 7));
}

TEST(InlineVector, CopiesStandAlone) {
  for (const size_t size : {2u, 3u, 4u, 9u}) {
    Few from;
    from.assign(size, 5);
    Few copy = from;
    copy[0] = 6;
    EXPECT_EQ(from[0], 5);
    from = copy;
    EXPECT_EQ(from, copy);
    from.back() = 8;
    EXPECT_EQ(copy.back(), 5);
  }
}

TEST(InlineVector, MovingLeavesAnEmptyOneThatMayBeUsedAgain) {
  for (const size_t size : {2u, 9u}) {
    Few from, to = {1, 2, 3, 4, 5};
    from.assign(size, 5);
    to = std::move(from);
    EXPECT_EQ(to.size(), size);
    EXPECT_EQ(to.back(), 5);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    from.push_back(3);
    EXPECT_THAT(from, ElementsAre(3));
    EXPECT_EQ(to.back(), 5);
  }
}

TEST(InlineVector, InsertsAndErasesAnywhere) {
  Few values = {1, 2};
  values.insert(values.begin(), 0);
  values.insert(values.begin() + 2, 9);
  EXPECT_THAT(values, ElementsAre(0, 1, 9, 2));
  const std::vector<int64_t> more = {5, 6};
  values.insert(values.end(), more.begin(), more.end());
  EXPECT_THAT(values, ElementsAre(0, 1, 9, 2, 5, 6));
  values.erase(values.begin() + 1, values.begin() + 3);
  values.erase(values.end() - 1);
  EXPECT_THAT(values, ElementsAre(0, 2, 5));
}

TEST(InlineVector, StandsForAVector) {
  const std::vector<int64_t> vector = {1, 2, 3, 4, 5};
  const Few values = vector;
  EXPECT_EQ(std::vector<int64_t>(values), vector);
  EXPECT_TRUE(values == vector);
  EXPECT_FALSE(values == Few({1, 2, 3, 4}));
  EXPECT_EQ(std::span<const int64_t>(values).data(), values.data());
}

}  // namespace
}  // namespace fusebox
