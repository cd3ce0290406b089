// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// What ReadManifest says about the example manifest after one change.
std::string Complaint(const std::string& from, const std::string& to) {
  const Folder folder;
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", With(ExampleManifest(), from, to)));
  if (manifest) return "accepted";
  EXPECT_EQ(manifest.error().code, Code::kInvalid);
  return With(manifest.error().message, folder.path() + "/", "");
}

TEST(Manifest, ReadsTheExampleOfTheDocumentation) {
  const auto manifest = ReadManifest(std::string(kExamples) + "/fusebox-plugin.json");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->id, "com.acme.my_op");
  EXPECT_EQ(manifest->version, "1.0.0");
  EXPECT_EQ(manifest->name_space, "acme");
  EXPECT_EQ(manifest->license, "Apache-2.0");
  ASSERT_EQ(manifest->rules.size(), 1u);
  EXPECT_EQ(manifest->rules[0].id, "acme.my_op.f32");
  EXPECT_THAT(manifest->rules[0].implements, ElementsAre("my_custom_fused_op"));
  EXPECT_EQ(manifest->rules[0].min_version, 1);
  EXPECT_EQ(manifest->rules[0].max_version, 0);
  EXPECT_EQ(manifest->rules[0].when, R"({"example_option":{"minimum":0}})");
  ASSERT_EQ(manifest->rules[0].emits.size(), 1u);
  EXPECT_EQ(manifest->rules[0].emits[0].name, "my_custom_fused_op");
  ASSERT_EQ(manifest->ops.size(), 1u);
  EXPECT_EQ(manifest->ops[0].kind, FBX_OP_CUSTOM);
  EXPECT_EQ(manifest->ops[0].version, 1);
  EXPECT_THAT(manifest->ops[0].options_schema, HasSubstr("example_option"));
  EXPECT_THAT(manifest->options_schema, HasSubstr("denormals"));
  EXPECT_THAT(manifest->requires_extensions, ElementsAre("fusebox.threads/1?"));
}

TEST(Manifest, TakesTheLibraryForThisMachine) {
  const auto manifest = ReadManifest(std::string(kExamples) + "/fusebox-plugin.json");
  ASSERT_TRUE(manifest) << manifest.error().message;
#if defined(__x86_64__)
  EXPECT_THAT(manifest->library, EndsWith("/sdk/schema/examples/my_op.so"));
  EXPECT_EQ(manifest->no_library, "");
#else
  EXPECT_EQ(manifest->no_library,
            "it has no library for linux-aarch64, only for linux-x86_64; add one to \"libraries\"");
#endif
}

TEST(Manifest, IsTheOneOfTheSamplePlugin) {
  const std::string library =
      " \"libraries\": [{\"platform\": \"linux-x86_64\", \"path\": \"my_op.so\", \"requires_cpu\": []}],\n";
  EXPECT_EQ(With(ExampleManifest(), library, ""),  // the build adds it
            Slurp(FUSEBOX_SOURCE_DIR "/samples/hello_plugin/fusebox-plugin.json"));
}

TEST(Manifest, SaysWhereAMisspeltKeyStandsAndWhatWasMeant) {
  EXPECT_EQ(Complaint("\"license\"", "\"licence\""),
            "fusebox-plugin.json:2:78: plugin/licence: unknown key \"licence\"; did you mean \"license\"?");
  EXPECT_EQ(Complaint("\"manifest_version\"", "\"manifest_verison\""),
            "fusebox-plugin.json:1:2: manifest_verison: unknown key \"manifest_verison\"; did you mean "
            "\"manifest_version\"?");
  EXPECT_THAT(Complaint("\"emits\"", "\"emit\""), HasSubstr("did you mean \"emits\"?"));
}

TEST(Manifest, NamesTheKeyThatIsMissing) {
  EXPECT_EQ(Complaint(", \"namespace\": \"acme\"", ""),
            "fusebox-plugin.json:2:2: plugin: lacks the key \"namespace\"");
}

TEST(Manifest, SaysWhatAValueShouldBe) {
  EXPECT_EQ(Complaint("\"major\": 1", "\"major\": \"1\""),
            "fusebox-plugin.json:3:10: abi/major: expected integer, not \"1\"");
  EXPECT_EQ(
      Complaint("\"linux-x86_64\"", "\"linux-x86-64\""),
      "fusebox-plugin.json:4:17: libraries/0/platform: \"linux-x86-64\" is not one of \"linux-x86_64\", "
      "\"linux-aarch64\"; did you mean \"linux-x86_64\"?");
  EXPECT_EQ(Complaint("com.acme.my_op", "Acme"),
            "fusebox-plugin.json:2:13: plugin/id: \"Acme\" does not match ^[a-z0-9]+(\\.[a-z0-9_]+)+$");
  EXPECT_THAT(Complaint("\"versions\": \"1-\"", "\"versions\": \"one\""),
              HasSubstr("\"one\" does not match"));
  EXPECT_THAT(Complaint("\"versions\": \"1-\"", "\"versions\": \"3-2\""),
              HasSubstr("versions: the range is empty"));
}

TEST(Manifest, WantsExactlyOneNameForAnOp) {
  EXPECT_THAT(Complaint("{\"custom\": \"my_custom_fused_op\", \"version\": 1}", "{\"version\": 1}"),
              HasSubstr("emits/0: needs exactly one of the keys \"custom\", \"builtin\""));
  EXPECT_THAT(Complaint("{\"custom\": \"my_custom_fused_op\", \"version\": 1}",
                        "{\"custom\": \"x\", \"builtin\": \"ADD\"}"),
              HasSubstr("needs exactly one of the keys"));
}

TEST(Manifest, KnowsTheBuiltinOps) {
  EXPECT_EQ(Complaint("{\"custom\": \"my_custom_fused_op\", \"version\": 1}", "{\"builtin\": \"CONV2D\"}"),
            "fusebox-plugin.json:7:70: provides/rules/0/emits/0/builtin: no builtin op \"CONV2D\"; did you "
            "mean \"CONV_2D\"?");
}

TEST(Manifest, BindsRulesToTheNamespace) {
  EXPECT_THAT(Complaint("acme.my_op.f32", "other.my_op.f32"),
              HasSubstr("does not begin with the plugin's namespace \"acme.\""));
}

TEST(Manifest, HoldsNothingThatClaimsToBeASchemaAndIsNone) {
  EXPECT_EQ(Complaint("{\"minimum\": 0}}, \"emits\"", "{\"type\": \"intger\"}}, \"emits\""),
            "fusebox-plugin.json:7:15: provides/rules/0/when: not a JSON Schema: Unrecognised JSON type name "
            "'intger'");
  EXPECT_THAT(
      Complaint("{\"minimum\": 0}}, \"emits\"", "{\"$ref\": \"#/properties/example_option\"}}, \"emits\""),
      HasSubstr("provides/rules/0/when: not a JSON Schema: the reference \"#/properties/example_option\" "
                "refers to itself"));
  EXPECT_THAT(Complaint("\"minimum\": 0}}}", "\"minimum\": []}}}"),
              HasSubstr("provides/ops/0/options_schema: not a JSON Schema: "));
  EXPECT_THAT(
      Complaint(
          "\"delegates\": []",
          "\"delegates\": [{\"name\": \"a\"}, {\"name\": \"b\", \"options_schema\": {\"$ref\": \"#\"}}]"),
      HasSubstr(
          "provides/delegates/1/options_schema: not a JSON Schema: the reference \"#\" refers to itself"));
  EXPECT_THAT(Complaint("{\"enum\": [\"keep\", \"flush\"]", "{\"enum\": \"keep\""),
              HasSubstr(": options_schema: not a JSON Schema: "));
}

TEST(Manifest, RefusesMisspeltKeywordsInSchemas) {
  EXPECT_EQ(Complaint("{\"minimum\": 0}}, \"emits\"", "{\"minimun\": 0}}, \"emits\""),
            "fusebox-plugin.json:7:43: provides/rules/0/when/example_option/minimun: unknown keyword "
            "\"minimun\" of JSON Schema; did you mean \"minimum\"?");
  EXPECT_THAT(Complaint("\"minimum\": 0}}}", "\"minimun\": 0}}}"),
              HasSubstr("provides/ops/0/options_schema/properties/example_option/minimun: unknown keyword"));
  EXPECT_THAT(Complaint("{\"enum\": [\"keep\", \"flush\"]", "{\"anyOf\": [{}, {\"enums\": [1]}]"),
              HasSubstr(": options_schema/properties/denormals/anyOf/1/enums: unknown keyword"));
  EXPECT_EQ(
      Complaint("\"minimum\": 0}}}", "\"minimum\": 0, \"x-unit\": \"s\", \"default\": {\"minimun\": 1}}}}"),
      "accepted");
}

TEST(Manifest, HasWhatSealWrites) {
  const std::string sha(64, 'a');
  EXPECT_EQ(Complaint("\"requires_cpu\": []", "\"sha256\": \"" + sha +
                                                  "\", \"build_id\": \"0123456789abcdef0123\", \"abi\": "
                                                  "{\"major\": 1, \"minor\": 2, \"min_host_minor\": 0}"),
            "accepted");
  EXPECT_THAT(Complaint("\"requires_cpu\": []", "\"sha256\": \"" + sha.substr(1) + "\""),
              HasSubstr("libraries/0/sha256: \"" + sha.substr(5) + "..."));
  EXPECT_THAT(Complaint("\"requires_cpu\": []", "\"build_id\": \"123\""),
              HasSubstr("libraries/0/build_id: \"123\" does not match ^([0-9a-f][0-9a-f]){4,64}$"));
  EXPECT_THAT(Complaint("\"requires_cpu\": []", "\"abi\": 7"),
              HasSubstr("libraries/0/abi: expected object, not 7"));
}

TEST(Manifest, TakesLibrariesOfSeveralPlatformsInFoldersOfTheirOwn) {
  const Folder folder;
  const std::string text = With(
      ExampleManifest(), "[{\"platform\": \"linux-x86_64\", \"path\": \"my_op.so\", \"requires_cpu\": []}]",
      R"([{"platform": "linux-x86_64", "path": "linux-x86_64/my_op.so"},
               {"platform": "linux-aarch64", "path": "linux-aarch64/my_op.so"}])");
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", text));
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_THAT(manifest->library, EndsWith("/" + std::string(kPlatform) + "/my_op.so"));
}

TEST(Manifest, RefusesSchemasOfOpsThatCannotHold) {
  EXPECT_THAT(Complaint("\"minimum\": 0}}}", "\"default\": null}}}"),
              HasSubstr("provides/ops/0/options_schema: default of example_option: null is not allowed"));
  EXPECT_THAT(
      Complaint("{\"custom\": \"my_custom_fused_op\", \"version\": 1,", "{\"builtin\": \"ADD\","),
      HasSubstr("provides/ops/0/options_schema: is for custom ops; the format defines the options of ADD"));
}

TEST(Manifest, ListsAnOpOrADelegateOnce) {
  EXPECT_THAT(Complaint("\"ops\": [", "\"ops\": [{\"custom\": \"my_custom_fused_op\", \"version\": 1}, "),
              HasSubstr("provides/ops/1: \"my_custom_fused_op\" is duplicated"));
  EXPECT_THAT(Complaint("\"delegates\": []", R"("delegates": [{"name": "a"}, {"name": "a"}])"),
              HasSubstr("provides/delegates/1/name: \"a\" is duplicated"));
}

TEST(Manifest, OfTheFutureNeedsANewerFusebox) {
  for (const std::string version : {"1.1", "2.0", "12.34"}) {
    EXPECT_EQ(
        Complaint("{\"manifest_version\": \"1.0\"", "{\"new\": 1, \"manifest_version\": \"" + version + "\""),
        "fusebox-plugin.json:1:12: manifest_version: it needs a newer Fusebox: the manifest has version " +
            version + ", this host reads versions up to 1.0");
  }
  EXPECT_THAT(Complaint("\"1.0\"", "\"0.9\""), HasSubstr("\"0.9\" is not one of \"1.0\""));
}

TEST(Manifest, AllowsAStarOnlyAtTheEndOfAName) {
  EXPECT_EQ(Complaint("[\"my_custom_fused_op\"]", "[\"lstm_*\", \"gru\"]"), "accepted");
  EXPECT_THAT(Complaint("[\"my_custom_fused_op\"]", "[\"*_op\"]"),
              HasSubstr("implements/0: * is allowed only at the end"));
}

TEST(Manifest, LeavesVendorKeysAlone) {
  EXPECT_EQ(Complaint("\"abi\": {", "\"x-build\": {\"id\": 7}, \"abi\": {\"x-note\": null, "), "accepted");
  EXPECT_THAT(Complaint("\"abi\": {", "\"xbuild\": 1, \"abi\": {"), HasSubstr("unknown key \"xbuild\""));
}

TEST(Manifest, ListsDelegates) {
  const Folder folder;
  const std::string text = With(ExampleManifest(), "\"delegates\": []",
                                "\"delegates\": [{\"name\": \"fast\", \"options_schema\": {}}]");
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", text));
  ASSERT_TRUE(manifest) << manifest.error().message;
  ASSERT_EQ(manifest->delegates.size(), 1u);
  EXPECT_EQ(manifest->delegates[0].name, "fast");
}

constexpr char kOpVersion[] = "\"ops\": [{\"custom\": \"my_custom_fused_op\", \"version\": 1,";
// The example with a member "quantization" of its op.
std::string Quantized(const std::string& text) {
  return std::string(kOpVersion) + " \"quantization\": " + text + ",";
}

TEST(Manifest, HasTheRolesOfAnOpInQuantization) {
  const Folder folder;
  const auto manifest = ReadManifest(folder.Write(
      "fusebox-plugin.json",
      With(ExampleManifest(), kOpVersion,
           Quantized(R"({"weights": [{"operand": 1, "axis": 0}, {"operand": 3}], "asymmetric_inputs": true,
                         "biases": [{"operand": 2, "input": 0, "weights": 1}],
                         "same_scale": [{"operands": [0, 4], "results": [1]}]})"))));
  ASSERT_TRUE(manifest) << manifest.error().message;
  const auto& roles = manifest->ops[0].quantization;
  ASSERT_TRUE(roles);
  EXPECT_TRUE(roles->asymmetric_inputs);
  ASSERT_EQ(roles->weights.size(), 2u);
  EXPECT_EQ(roles->weights[0].operand, 1u);
  EXPECT_EQ(roles->weights[0].axis, 0);
  EXPECT_EQ(roles->weights[1].axis, -1);
  ASSERT_EQ(roles->biases.size(), 1u);
  EXPECT_EQ(roles->biases[0].operand, 2u);
  EXPECT_EQ(roles->biases[0].weights, 1u);
  ASSERT_EQ(roles->same_scale.size(), 1u);
  EXPECT_THAT(roles->same_scale[0].operands, ElementsAre(0u, 4u));
  EXPECT_THAT(roles->same_scale[0].results, ElementsAre(1u));
}

TEST(Manifest, ChecksTheRolesOfAnOpInQuantization) {
  const auto with = [](const std::string& text) { return Complaint(kOpVersion, Quantized(text)); };
  EXPECT_EQ(with("{}"), "accepted");
  EXPECT_THAT(with(R"({"weight": []})"), HasSubstr("unknown key \"weight\"; did you mean \"weights\"?"));
  EXPECT_THAT(with(R"({"weights": [{"operand": -1}]})"), HasSubstr("weights/0/operand: -1 is less than 0"));
  EXPECT_THAT(with(R"({"weights": [{"axis": 0}]})"), HasSubstr("weights/0: lacks the key \"operand\""));
  EXPECT_THAT(with(R"({"weights": [{"operand": 1}, {"operand": 1}]})"),
              HasSubstr("provides/ops/0/quantization/weights/1/operand: operand 1 has a role already"));
  EXPECT_THAT(with(R"({"biases": [{"operand": 2, "input": 0, "weights": 1}]})"),
              HasSubstr("biases/0/weights: operand 1 is not listed in \"weights\""));
  EXPECT_THAT(with(R"({"weights": [{"operand": 1}], "biases": [{"operand": 2, "input": 1, "weights": 1}]})"),
              HasSubstr("biases/0/input: operand 1 is not an activation"));
  EXPECT_THAT(with(R"({"same_scale": [{"operands": [0]}]})"),
              HasSubstr("same_scale/0: has fewer than two operands and results"));
  EXPECT_THAT(with(R"({"same_scale": [{"operands": [0, 1]}, {"operands": [1, 2]}]})"),
              HasSubstr("same_scale/1/operands: operand 1 has a role already"));
  EXPECT_THAT(with(R"({"same_scale": [{"operands": [0], "results": [0]}, {"results": [0, 1]}]})"),
              HasSubstr("same_scale/1/results: result 0 is in two groups"));
  EXPECT_THAT(Complaint("{\"custom\": \"my_custom_fused_op\", \"version\": 1,\n",
                        "{\"builtin\": \"MUL\", \"quantization\": {},\n"),
              HasSubstr("provides/ops/0/quantization: is for custom ops; the format defines how MUL is "
                        "quantized"));
}

TEST(Manifest, KeepsLibrariesInThePluginsFolder) {
  EXPECT_THAT(Complaint("\"my_op.so\"", "\"../my_op.so\""),
              HasSubstr("libraries/0/path: the path must not contain \"..\""));
  EXPECT_THAT(Complaint("\"my_op.so\"", "\"/usr/lib/my_op.so\""),
              HasSubstr("must be relative to the manifest"));
}

TEST(Manifest, FollowsNoLinkOutOfThePluginsFolder) {
  const Folder folder;
  const std::string outside = folder.Write("outside.so", "");
  const std::string path = folder.Write("plugin/fusebox-plugin.json", ExampleManifest());
  std::filesystem::create_symlink(outside, folder.path() + "/plugin/my_op.so");
  const auto manifest = ReadManifest(path);
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message, HasSubstr("a link out of the plugin's folder"));

  std::filesystem::remove(folder.path() + "/plugin/my_op.so");
  folder.Write("plugin/real.so", "");
  std::filesystem::create_symlink("real.so", folder.path() + "/plugin/my_op.so");
  EXPECT_TRUE(ReadManifest(path)) << "a link that stays inside is fine";
}

TEST(Manifest, SaysWhichCpuFeatureIsMissing) {
  const Folder folder;
  const std::string text = With(ExampleManifest(), "\"requires_cpu\": []", "\"requires_cpu\": [\"quantum\"]");
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", text));
  ASSERT_TRUE(manifest) << manifest.error().message;
#if defined(__x86_64__)
  EXPECT_EQ(manifest->library, "");
  EXPECT_EQ(manifest->no_library, "my_op.so needs the CPU feature quantum, which this machine lacks");
#endif
}

TEST(Manifest, SaysWhatIsWrongWithARewrite) {
  const auto complaint = [](const std::string& rewrite) {
    return Complaint("\"emits\"", "\"rewrite\": " + rewrite + ", \"emits\"");
  };
  EXPECT_EQ(complaint(R"({"operands": [{"operand": 0, "transpose": [1, 0]}, null, 1]})"), "accepted");
  EXPECT_THAT(complaint(R"({"operands": [{"operand": 0, "transpose": [0, 0]}]})"),
              HasSubstr("rewrite/operands/0/transpose: must list each dimension once"));
  EXPECT_THAT(complaint(R"({"operands": [{"operand": 0, "transpose": [1, 0], "rank": 3}]})"),
              HasSubstr("transpose: has 2 dimensions, the rank is 3"));
  EXPECT_THAT(complaint(R"({"operands": [{"operand": 0, "dtype": "f33"}]})"),
              HasSubstr("operands/0/dtype: no type \"f33\""));
  EXPECT_THAT(complaint(R"({"operands": [-1]})"), HasSubstr("rewrite/operands/0"));
  EXPECT_THAT(complaint(R"({"operands": [{"rank": 1}]})"), HasSubstr("lacks the key \"operand\""));
  EXPECT_THAT(complaint(R"({"attributes": {"k": {}}})"), HasSubstr("rewrite/attributes/k"));
  EXPECT_THAT(complaint(R"({"attributes": {"k": {"value": [1, "a"]}}})"),
              HasSubstr("rewrite/attributes/k/value: a list must hold"));
  EXPECT_THAT(complaint(R"({"opernads": []})"), HasSubstr("did you mean \"operands\"?"));
  EXPECT_THAT(
      Complaint("\"emits\": [{\"custom\": \"my_custom_fused_op\", \"version\": 1}]", "\"rewrite\": {}"),
      HasSubstr("rewrite: the rule must emit exactly one op"));
}

TEST(Manifest, NeedsLibrariesForWhatIsCode) {
  const std::string libraries =
      R"( "libraries": [{"platform": "linux-x86_64", "path": "my_op.so", "requires_cpu": []}],)";
  EXPECT_THAT(
      Complaint(libraries, ""),
      HasSubstr("lacks the key \"libraries\", which its rule acme.my_op.f32 without \"rewrite\" needs"));
  const Folder folder;
  const std::string declared =
      With(With(ExampleManifest(), libraries, ""), "\"emits\"", "\"rewrite\": {}, \"emits\"");
  const auto manifest = ReadManifest(folder.Write("fusebox-plugin.json", declared));
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message, HasSubstr("which its kernel of my_custom_fused_op needs"));
}

TEST(Manifest, ReportsSyntaxErrorsWithTheirPlace) {
  EXPECT_THAT(Complaint("\"abi\":", "\"abi\""), HasSubstr("fusebox-plugin.json:3:8: syntax error"));
  EXPECT_THAT(Complaint("\"abi\":", "\"plugin\":"), HasSubstr("key \"plugin\" is duplicated"));
}

TEST(Manifest, RefusesEndlessStrings) {
  EXPECT_THAT(Complaint("com.acme.my_op", std::string(1 << 19, 'a')), HasSubstr("longer than"));
}

TEST(Manifest, NamesAFileThatIsNotThere) {
  const auto manifest = ReadManifest("/nowhere/fusebox-plugin.json");
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message, HasSubstr("/nowhere/fusebox-plugin.json: No such file"));
}

}  // namespace
}  // namespace fusebox
