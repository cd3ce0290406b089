// SPDX-License-Identifier: Apache-2.0
// Values of importers that depend on the configuration of a layer.
#include "converter/import/keras/importers.h"

#include <gtest/gtest.h>

namespace fusebox::keras {
namespace {

using nlohmann::json;

TEST(KerasImporters, ValuesOfTheConfiguration) {
  const json config = {{"units", 12}, {"heads", 4}, {"none", nullptr}, {"name", "a"}};
  const auto of = [&](const char* text) {
    const auto value = WithConfig(json::parse(text), config);
    return value ? value->dump() : value.error().message;
  };
  EXPECT_EQ(of(R"([1, {"a": {"from": "units"}}, "units"])"), R"([1,{"a":12},"units"])");
  EXPECT_EQ(of(R"({"from": "units", "over": "heads", "times": 2})"), "6");
  EXPECT_EQ(of(R"({"from": "units", "over": 5})"), "units: 12 is no multiple of 5");
  EXPECT_EQ(of(R"({"from": "units", "over": 0})"), "units: 12 is no multiple of 0");
  EXPECT_EQ(of(R"({"from": "name", "times": 2})"), "name: \"a\" is no factor; it must be an integer");
  EXPECT_EQ(of(R"({"from": "none"})"), "null");
  EXPECT_EQ(of(R"({"from": "none", "value": 7})"), "7");
  EXPECT_EQ(of(R"({"from": "other", "value": 7})"), "7");
  EXPECT_EQ(of(R"({"from": "other"})"), "the configuration has no key other");
}

}  // namespace
}  // namespace fusebox::keras
