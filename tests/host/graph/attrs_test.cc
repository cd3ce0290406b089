// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/graph/types.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> KeysOf(const Attrs& attrs) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : attrs) keys.push_back(key);
  return keys;
}

TEST(Attrs, AreSortedByNameInWhateverOrderTheyAreSet) {
  Attrs attrs;
  for (const char* key : {"stride_w", "axis", "padding", "b"}) attrs.Set(key, 1);
  EXPECT_THAT(KeysOf(attrs), ElementsAre("axis", "b", "padding", "stride_w"));
  Attrs other;
  for (const char* key : {"b", "padding", "stride_w", "axis"}) other.Set(key, 1);
  EXPECT_EQ(attrs, other);
  other.Set("axis", 2);
  EXPECT_FALSE(attrs == other);
}

TEST(Attrs, HoldOneValueForAName) {
  Attrs attrs;
  attrs.Set("axis", 1);
  attrs.Set("axis", "last");
  EXPECT_EQ(attrs.size(), 1u);
  EXPECT_EQ(attrs.str("axis", ""), "last");
  EXPECT_EQ(attrs.i64("axis", -7), -7);  // of another kind
}

TEST(Attrs, FindWhatIsThereAndNothingElse) {
  Attrs attrs;
  EXPECT_EQ(attrs.Find("a"), nullptr);
  attrs.Set("b", 1);
  for (const char* missing : {"a", "c", "", "bb"}) {
    EXPECT_EQ(attrs.Find(missing), nullptr) << missing;
    attrs.Erase(missing);
  }
  EXPECT_EQ(attrs.i64("b", 0), 1);
  attrs.Erase("b");
  EXPECT_TRUE(attrs.empty());
}

}  // namespace
}  // namespace fusebox
