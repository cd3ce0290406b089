// SPDX-License-Identifier: Apache-2.0
// Schemas that plugins bring along: whatever they hold, a bad one is an error and never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// "ok", or the violation as "/pointer: what".
std::string Check(const std::string& schema, const std::string& value) {
  const auto parsed = JsonSchema::Parse(schema);
  if (!parsed) return "no schema: " + parsed.error().message;
  const auto violation = parsed->Check(json::parse(value));
  return violation ? violation->pointer + ": " + violation->what : "ok";
}

std::string Filled(const std::string& schema, const std::string& value) {
  const auto parsed = JsonSchema::Parse(schema);
  if (!parsed) return "no schema: " + parsed.error().message;
  json filled = json::parse(value);
  parsed->FillDefaults(filled);
  return filled.dump();
}

TEST(Schema, ExplainsTheBoundsOfNumbers) {
  const std::string schema = R"({"properties": {"n": {"minimum": 1, "exclusiveMaximum": 3.5}}})";
  EXPECT_EQ(Check(schema, R"({"n": 2})"), "ok");
  EXPECT_EQ(Check(schema, R"({"n": 0})"), "/n: 0 is less than 1");
  EXPECT_EQ(Check(schema, R"({"n": 3.5})"), "/n: 3.5 is not below 3.5");
}

TEST(Schema, FindsTheDeepestMistake) {
  const std::string schema =
      R"({"properties": {"a": {"properties": {"b": {"items": {"type": "integer"}}}}}})";
  EXPECT_EQ(Check(schema, R"({"a": {"b": [1, 2, "three"]}})"), "/a/b/2: expected integer, not \"three\"");
}

TEST(Schema, EscapesKeysInPointers) {
  EXPECT_EQ(Check(R"({"additionalProperties": {"type": "integer"}})", R"({"a/b~c": "x"})"),
            "/a~1b~0c: expected integer, not \"x\"");
}

TEST(Schema, FollowsReferencesWithinItself) {
  const std::string schema =
      R"({"definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n"}}})";
  EXPECT_EQ(Check(schema, R"({"a": true})"), "/a: expected integer, not true");
}

TEST(Schema, MayDescribeItself) {
  const std::string tree =
      R"({"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": false})";
  EXPECT_EQ(Check(tree, R"({"child": {"child": {}}})"), "ok");
  EXPECT_THAT(Check(tree, R"({"child": {"child": {"chlid": {}}}})"), HasSubstr("did you mean \"child\"?"));
}

TEST(Schema, WhoseReferencesNeverEndIsAnError) {
  for (
      const char* endless :
      {R"({"$ref": "#"})", R"({"$ref": "#/"})", R"({"allOf": [{"$ref": "#"}]})",
       R"({"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"$ref": "#/definitions/x"}}})",
       R"({"definitions": {"x": {"anyOf": [{}, {"not": {"$ref": "#/definitions/y"}}]},
                            "y": {"if": {"$ref": "#/definitions/x"}, "then": {}}}})",
       R"({"dependencies": {"a": {"oneOf": [{"$ref": "#"}]}}})"})
    EXPECT_THAT(Check(endless, R"({"a": {}})"),
                testing::AnyOf(HasSubstr("refers to itself"), HasSubstr("has no target")))
        << endless;
  EXPECT_EQ(Check(R"({"$ref": "#"})", "{}"),
            "no schema: not a JSON Schema: the reference \"#\" refers to itself");
}

TEST(Schema, WhoseReferencesLeadOutOfItIsAnError) {
  for (const char* text : {"other.json", "http://nowhere/schema.json", "#x", "#/definitions/%78",
                           "#//definitions/x", "#/definitions/x/", "#/definitions/gone"}) {
    const json schema = {{"definitions", {{"x", json::object()}}}, {"properties", {{"a", {{"$ref", text}}}}}};
    EXPECT_EQ(Check(schema.dump(), "{}"),
              "no schema: not a JSON Schema: the reference \"" + std::string(text) + "\" has no target");
  }
}

// x0 -> {"properties": {"a": x1}} -> ...
std::string Chain(size_t links) {
  json schema = {{"$ref", "#/definitions/x0"}, {"definitions", json::object()}};
  for (size_t i = 0; i < links; ++i)
    schema["definitions"]["x" + std::to_string(i)] = {
        {"properties", {{"a", {{"$ref", "#/definitions/x" + std::to_string(i + 1)}}}}}};
  schema["definitions"]["x" + std::to_string(links)] = true;
  return schema.dump();
}

TEST(Schema, WhoseReferencesLeadTooDeepIsAnError) {
  EXPECT_EQ(Check(Chain(80), R"({"a": {"a": 1}})"), "ok");
  EXPECT_THAT(Check(Chain(5000), "{}"),
              HasSubstr("no schema: not a JSON Schema: its references nest deeper than "));
}

TEST(Schema, ThatIsNoneIsAnError) {
  EXPECT_THAT(Check("{", "{}"), HasSubstr("no schema: "));
  EXPECT_THAT(Check(R"({"type": 7})", "{}"), HasSubstr("no schema: "));
  EXPECT_THAT(Check(R"({"$ref": "#/definitions/gone"})", "{}"), HasSubstr("no schema: "));
  EXPECT_THAT(Check(R"({"$ref": "http://nowhere/schema.json"})", "{}"), HasSubstr("no schema: "));
  EXPECT_THAT(Check(R"({"properties": {"a": {"pattern": "("}}})", R"({"a": "x"})"), testing::Ne("ok"));
}

TEST(Schema, FillsDefaultsInNestedObjects) {
  const std::string schema = R"({"properties": {
      "a": {"default": 1}, "b": {"default": {}, "properties": {"c": {"default": [2]}}}, "d": {"properties": {"e": {"default": 3}}}}})";
  EXPECT_EQ(Filled(schema, "{}"), R"({"a":1,"b":{"c":[2]}})");
  EXPECT_EQ(Filled(schema, R"({"a": 7, "d": {}})"), R"({"a":7,"b":{"c":[2]},"d":{"e":3}})");
}

TEST(Schema, EndsDefaultsThatContainThemselves) {
  EXPECT_THAT(Filled(R"({"default": {}, "properties": {"a": {"$ref": "#"}}})", "{}"), HasSubstr("{\"a\":"));
}

std::string Placed(const std::string& schema, const std::string& value) {
  const auto parsed = JsonSchema::Parse(schema);
  if (!parsed) return "no schema: " + parsed.error().message;
  json placed = json::parse(value);
  parsed->ResolvePaths(placed, "/etc/app");
  return placed.dump();
}

TEST(Schema, PathsLeadFromTheFolderOfTheFileThatSaysThem) {
  const std::string path =
      R"({"properties": {"p": {"type": "string", "format": "path"}, "q": {"type": "string"}}})";
  EXPECT_EQ(Placed(path, R"({"p": "a/b", "q": "a/b"})"), R"({"p":"/etc/app/a/b","q":"a/b"})");
  EXPECT_EQ(Placed(path, R"({"p": "../cache/"})"), R"({"p":"/etc/cache/"})") << "it stays a folder's";
  EXPECT_EQ(Placed(path, R"({"p": "/abs"})"), R"({"p":"/abs"})");
  EXPECT_EQ(Placed(path, R"({"p": 3})"), R"({"p":3})") << "for the check to refuse";
  const std::string inside =
      R"({"properties": {"o": {"properties": {"list": {"items": {"$ref": "#/definitions/p"}}}}},
          "definitions": {"p": {"format": "path"}}})";
  EXPECT_EQ(Placed(inside, R"({"o": {"list": ["x", "/y"]}})"), R"({"o":{"list":["/etc/app/x","/y"]}})");
}

TEST(Schema, WordsThatStandForPathsStay) {
  const std::string schema =
      R"({"properties": {"p": {"type": "string", "anyOf": [{"enum": ["", "auto"]}, {"format": "path"}]}}})";
  EXPECT_EQ(Placed(schema, R"({"p": "auto"})"), R"({"p":"auto"})");
  EXPECT_EQ(Placed(schema, R"({"p": ""})"), R"({"p":""})");
  EXPECT_EQ(Placed(schema, R"({"p": "auto/"})"), R"({"p":"/etc/app/auto/"})");
  EXPECT_EQ(Check(schema, R"({"p": "x"})"), "ok");
  EXPECT_EQ(Check(schema, R"({"p": 3})"), "/p: expected string, not 3");
}

TEST(Schema, OfNothingAcceptsEverything) { EXPECT_FALSE(JsonSchema().Check(json::parse("[1]"))); }

}  // namespace
}  // namespace fusebox
