// SPDX-License-Identifier: Apache-2.0
// The entry of a plugin: what it needs of the host, and unload.
#include <gmock/gmock.h>

#include "host/plugin/registry.h"
#include "tests/sdk/newer.h"

namespace fusebox {
namespace {

TEST(Entry, NeedsTheNewestOfTheHostsThatItsClassesNeed) {
  EXPECT_EQ(newer_entry.min_host_minor, 7u);
  const fbx_entry* const entries[] = {&newer_entry};
  const auto registry = Registry::Create({.search_default_path = false}, entries);
  ASSERT_FALSE(registry);
  EXPECT_THAT(registry.error().message,
              ::testing::HasSubstr("it needs a host with plugin ABI 1.7, this one has 1.0"));
}

TEST(Entry, UnloadsEachClassOnce) {
  fbx_entry entry = newer_entry;
  entry.min_host_minor = 0;
  newer_unloads = 0;
  {
    const fbx_entry* const entries[] = {&entry};
    const auto registry = Registry::Create({.search_default_path = false}, entries);
    ASSERT_TRUE(registry) << registry.error().message;
    EXPECT_EQ(newer_unloads, 0);
  }
  EXPECT_EQ(newer_unloads, 2);
}

}  // namespace
}  // namespace fusebox
