// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Complaint(const std::string& text) {
  const Folder folder;
  const auto config = ReadConfig(folder.Write("fusebox.json", text));
  return config ? "accepted" : With(config.error().message, folder.path() + "/", "");
}

TEST(Config, ReadsTheExampleOfTheDocumentation) {
  const auto config = ReadConfig(std::string(kExamples) + "/fusebox.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->plugin_path, ElementsAre(std::string(kExamples) + "/plugins"))
      << "relative to the file";
  EXPECT_THAT(config->allow, ElementsAre("com.acme.*", "fusebox.*"));
  EXPECT_EQ(config->options.at("com.acme.my_op").str("denormals", ""), "flush");
  ASSERT_TRUE(config->delegates);
  ASSERT_EQ(config->delegates->size(), 1u);
  EXPECT_EQ(config->delegates->at(0).name, "xnnpack");
  EXPECT_EQ(config->delegates->at(0).options.str("weight_cache_path", ""), "cache/");
  EXPECT_THAT(config->prefer.at("my_custom_fused_op"), ElementsAre("com.acme.my_op"));
}

TEST(Config, ReadsOptionsOfEveryKind) {
  const Folder folder;
  const auto config = ReadConfig(folder.Write("fusebox.json", R"({"options": {"a.b": {
      "flag": true, "n": -3, "x": 0.5, "s": "text", "ints": [1, 2], "numbers": [1, 2.5], "words": ["a"], "deep": {"n": 1}}}})"));
  ASSERT_TRUE(config) << config.error().message;
  const Attrs& options = config->options.at("a.b");
  EXPECT_TRUE(options.b("flag", false));
  EXPECT_EQ(options.i64("n", 0), -3);
  EXPECT_EQ(options.f64("x", 0), 0.5);
  EXPECT_EQ(options.str("s", ""), "text");
  EXPECT_THAT(options.i64s("ints"), ElementsAre(1, 2));
  ASSERT_NE(options.Find("numbers"), nullptr);
  EXPECT_THAT(std::get<std::vector<double>>(*options.Find("numbers")), ElementsAre(1, 2.5));
  EXPECT_THAT(std::get<std::vector<std::string>>(*options.Find("words")), ElementsAre("a"));
  EXPECT_EQ(std::get<std::shared_ptr<const Attrs>>(*options.Find("deep"))->i64("n", 0), 1);
}

TEST(Config, SaysWhereAMistakeStands) {
  EXPECT_EQ(Complaint("{\n \"plugins_path\": []}"),
            "fusebox.json:2:2: plugins_path: unknown key \"plugins_path\"; did you mean \"plugin_path\"?");
  EXPECT_EQ(Complaint("{\"deny\": \"a\"}"), "fusebox.json:1:2: deny: expected array, not \"a\"");
  EXPECT_EQ(Complaint("{\"prefer\": {\"x\": [3]}}"), "fusebox.json:1:19: prefer/x/0: expected string, not 3");
  EXPECT_THAT(Complaint("{\"delegates\": [{\"options\": {}}]}"),
              HasSubstr("delegates/0: lacks the key \"name\""));
}

TEST(Config, RefusesOptionsThatNoAttributeCanHold) {
  EXPECT_EQ(Complaint(R"({"options": {"a.b": {"n": null}}})"),
            "fusebox.json:1:22: options/a.b/n: null is not allowed");
  EXPECT_THAT(Complaint(R"({"options": {"a.b": {"n": [1, "2"]}}})"), HasSubstr("all of one kind"));
  EXPECT_THAT(Complaint(R"({"options": {"a.b": {"n": 18446744073709551615}}})"),
              HasSubstr("the integer is too large"));
}

TEST(Config, RefusesTextThatIsNoObject) {
  EXPECT_EQ(Complaint("[]"), "fusebox.json:1:1: expected object, not []");
  for (const char* blank : {"", " \n"})
    EXPECT_EQ(Complaint(blank), "fusebox.json:1:1: empty file, expected JSON");
  EXPECT_THAT(Complaint("{"), HasSubstr("fusebox.json:1:2: syntax error"));
  EXPECT_THAT(Complaint(std::string(5000, '[')), HasSubstr("fusebox.json"));
}

}  // namespace
}  // namespace fusebox
