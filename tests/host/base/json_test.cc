// SPDX-License-Identifier: Apache-2.0
#include "host/base/json.h"

#include <gtest/gtest.h>

namespace fusebox {
namespace {

TEST(Json, SaysWhereASyntaxErrorIs) {
  const auto bad = ParseJson("{\n  \"a\": 1,\n  \"b\" 2\n}", "x.json");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with("x.json:3:7: syntax error")) << bad.error().message;
}

TEST(Json, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(ParseJson(R"({"a": 1, "a": 2})", "x.json").error().message, "x.json: key \"a\" is duplicated");
  EXPECT_TRUE(ParseJson(R"({"a": {"a": 1}, "b": {"a": 2}})", "x.json"));
}

TEST(Json, RefusesEndlessNesting) {
  EXPECT_FALSE(ParseJson(std::string(200, '[') + std::string(200, ']'), "x.json"));
  EXPECT_FALSE(ParseJson(std::string(100000, '['), "x.json"));
}

TEST(Json, FindsThePlaceOfAPointer) {
  const std::string text =
      "{\n  \"plugin\": {\"id\": \"x,}\", \"a/b\": 1},\n  \"list\": [1,\n    {\"k\\\"\": 2}]\n}";
  EXPECT_EQ(PositionOf(text, ""), (Position{1, 1}));
  EXPECT_EQ(PositionOf(text, "/plugin"), (Position{2, 3}));
  EXPECT_EQ(PositionOf(text, "/plugin/id"), (Position{2, 14}));
  EXPECT_EQ(PositionOf(text, "/plugin/a~1b"), (Position{2, 27}));
  EXPECT_EQ(PositionOf(text, "/list/1"), (Position{4, 5}));
  EXPECT_EQ(PositionOf(text, "/list/1/k\""), (Position{4, 6}));
  EXPECT_EQ(PositionOf(text, "/list/7"), (Position{3, 3})) << "the deepest part that there is";
}

TEST(Json, SurvivesTextThatIsNoJson) {
  for (const char* text : {"", "{", "[", "{\"", "{\"a", "[1,", "{\"a\\", "}}}}"})
    EXPECT_EQ(PositionOf(text, "/a/0/b"), (Position{1, 1})) << text;
  EXPECT_EQ(PositionOf("{\"a\":", "/a/0/b"), (Position{1, 2})) << "the key is there, its value is not";
}

TEST(Nearest, ForgivesOneSlipInThree) {
  const std::vector<std::string> words = {"plugin_path", "allow", "options"};
  EXPECT_EQ(Nearest("plugin_paht", words), "plugin_path");
  EXPECT_EQ(Nearest("alow", words), "allow");
  EXPECT_EQ(Nearest("xyz", words), "");
  EXPECT_EQ(DidYouMean("option", words), "; did you mean \"options\"?");
  EXPECT_EQ(DidYouMean("delegates", words), "");
}

}  // namespace
}  // namespace fusebox
