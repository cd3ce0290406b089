// SPDX-License-Identifier: Apache-2.0
// What a manifest's importers must be.
#include "host/plugin/importers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kManifest = R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "com.acme.own", "version": "1.0.0", "namespace": "acme"},
 "provides": {"importers": [
  {"classes": ["acme>A", "acme.A"],
   "config_schema": {"properties": {"units": {"type": "integer"}, "bias": {"type": "boolean"}}},
   "inputs": ["x"],
   "weights": [{"name": "w", "shape": [-1, "units"], "when": {"bias": {"const": true}}}],
   "layers": [{"name": "dense", "class_name": "Dense", "config": {"units": {"from": "units", "times": 4}}}],
   "constants": {"half": {"type": "f32[]", "fill": 0.5}},
   "ops": [{"op": "MatMul", "inputs": ["x", "w"], "results": ["y"]},
           {"layer": "dense", "inputs": ["y"], "results": ["z"]},
           {"op": "Mul", "inputs": ["z", "half"], "results": ["out"]}],
   "outputs": ["out"]}]}})";

std::string ComplaintAbout(const std::string& from, const std::string& to) {
  const Folder folder;
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", With(kManifest, from, to)));
  if (manifest) return "accepted";
  EXPECT_EQ(manifest.error().code, Code::kInvalid);
  return With(manifest.error().message, folder.path() + "/fusebox-plugin.json:", "");
}

TEST(Importers, AreReadFromAManifestWithoutLibraries) {
  const Folder folder;
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", kManifest));
  ASSERT_TRUE(manifest) << manifest.error().message;
  const auto importers = ImportersOf(*manifest);
  ASSERT_EQ(importers.size(), 1u);
  EXPECT_EQ(importers[0].plugin, "com.acme.own");
  EXPECT_THAT(importers[0].classes, ElementsAre("acme>A", "acme.A"));
}

TEST(Importers, AreCheckedWithTheirPlace) {
  EXPECT_EQ(ComplaintAbout("[\"y\"], \"results\": [\"z\"]", "[\"yy\"], \"results\": [\"z\"]"),
            "11:42: provides/importers/0/ops/1/inputs/0: no value yy before; did you mean \"y\"?");
  EXPECT_THAT(ComplaintAbout("\"outputs\": [\"out\"]", "\"outputs\": [\"ut\"]"),
              EndsWith("outputs/0: no value ut before; did you mean \"out\"?"));
  EXPECT_THAT(ComplaintAbout("\"layer\": \"dense\"", "\"layer\": \"dens\""),
              EndsWith("ops/1/layer: no such layer; did you mean \"dense\"?"));
  EXPECT_THAT(ComplaintAbout("\"results\": [\"y\"]", "\"results\": [\"x\"]"),
              EndsWith("ops/0/results: two values have the name x"));
  EXPECT_THAT(ComplaintAbout("-1, \"units\"", "-1, \"unit\""),
              EndsWith("weights/0/shape/1: config_schema has no property unit; did you mean \"units\"?"));
  EXPECT_THAT(ComplaintAbout("-1, \"units\"", "-2, \"units\""), HasSubstr("-2 is less than -1"));
  EXPECT_THAT(ComplaintAbout("\"from\": \"units\"", "\"from\": \"size\""),
              EndsWith("config/units/from: config_schema has no property size"));
  EXPECT_THAT(ComplaintAbout("\"times\": 4", "\"time\": 4"),
              HasSubstr("only value, times and over are allowed"));
  EXPECT_THAT(ComplaintAbout("\"times\": 4", "\"times\": 0.5"), HasSubstr("expected an integer or a key"));
  EXPECT_THAT(ComplaintAbout("{\"bias\": {\"const\"", "{\"bis\": {\"const\""),
              HasSubstr("has no property bis"));
  EXPECT_THAT(ComplaintAbout("{\"const\": true}", "{\"consd\": true}"),
              HasSubstr("unknown keyword \"consd\""));
  EXPECT_THAT(ComplaintAbout("{\"type\": \"integer\"}", "{\"type\": \"intger\"}"),
              HasSubstr("not a JSON Schema"));
  EXPECT_THAT(ComplaintAbout("f32[]", "f33[]"), HasSubstr("constants/half/type: \"f33[]\" is no type"));
  EXPECT_THAT(ComplaintAbout("f32[]", "i32[]"), HasSubstr("constants/half: 0.5 is no i32"));
  EXPECT_THAT(ComplaintAbout("\"fill\": 0.5", "\"fill\": 0.5, \"values\": [1]"),
              HasSubstr("exactly one of the keys"));
  EXPECT_THAT(ComplaintAbout("[\"z\", \"half\"]", "[[\"z\"], \"half\"]"),
              HasSubstr("only layers have lists"));
  EXPECT_THAT(ComplaintAbout("\"layer\": \"dense\",", "\"layer\": \"dense\", \"attributes\": {},"),
              HasSubstr("ops/1/attributes: is for ops; layers have arguments"));
  EXPECT_THAT(ComplaintAbout("\"acme.A\"", "\"acme>A\""), HasSubstr("\"acme>A\" is duplicated"));
  EXPECT_THAT(ComplaintAbout("\"outputs\": [\"out\"]", "\"composite\": \"c\""),
              HasSubstr("lacks the key \"outputs\""));
  EXPECT_THAT(ComplaintAbout("\"importers\"", "\"importer\""), HasSubstr("did you mean \"importers\"?"));
}

TEST(Importers, WithoutOpsNeedARule) {
  const auto with = [](const std::string& members) {
    const Folder folder;
    const auto manifest = ReadManifest(folder.Write(
        "fusebox-plugin.json",
        R"({"manifest_version": "1.0", "abi": {"major": 1}, "plugin": {"id": "com.acme.own", "version": "1.0.0",
            "namespace": "acme"}, "provides": {"importers": [{"classes": ["A"], "inputs": ["x"])" +
            members + "}]}}"));
    return manifest ? "accepted" : manifest.error().message;
  };
  EXPECT_EQ(with(R"(, "composite": "c", "results": ["f32"])"), "accepted");
  EXPECT_THAT(with(R"(, "composite": "c")"),
              HasSubstr("needs \"ops\" and \"outputs\", or \"composite\" and \"results\""));
  EXPECT_THAT(with(R"(, "composite": "c", "results": ["f33"])"), HasSubstr("results/0: no type \"f33\""));
  EXPECT_THAT(with(R"(, "composite": "c", "results": ["f32"], "constants": {})"),
              HasSubstr("constants: is for importers with ops"));
}

}  // namespace
}  // namespace fusebox
