// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "host/base/table.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"
#include "tests/testing/on_device.h"

namespace fusebox::cli_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::vector<std::string> Keys(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(Inspect, JsonHoldsSubgraphsAndNodes) {
  const Finished done = Fusebox({"inspect", WriteAddModel("add.tflite", 1), "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const nlohmann::json json = done.Json();
  EXPECT_THAT(Keys(json), ElementsAre("appended_bytes", "description", "file", "metadata", "ops",
                                      "signatures", "subgraphs"));
  ASSERT_EQ(json["subgraphs"].size(), 1u);
  const nlohmann::json& graph = json["subgraphs"][0];
  EXPECT_THAT(Keys(graph), ElementsAre("constant_bytes", "inputs", "name", "nodes", "outputs"));
  ASSERT_EQ(graph["nodes"].size(), 1u);
  EXPECT_EQ(graph["nodes"][0]["op"], "ADD");
  EXPECT_THAT(Keys(graph["nodes"][0]), ElementsAre("inputs", "op", "options", "outputs", "version"));
  EXPECT_EQ(graph["nodes"][0]["inputs"][1]["constant"], true);
  EXPECT_EQ(graph["constant_bytes"], 4);
  EXPECT_EQ(json["ops"], nlohmann::json({{"ADD", 1}}));
  EXPECT_EQ(json["signatures"][0]["key"], "serving_default");
  EXPECT_THAT(json["signatures"][0]["inputs"], ElementsAre("x"));
}

TEST(Inspect, ACustomOpIsToldByItsName) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  const ValueId x = f.AddInput(type, "x");
  Node& node = f.AddNode(Op::kCustom, {x}, {type});
  node.name = "my_op";
  node.attrs.Set("example_option", 10);
  f.outputs = node.results;
  const std::string path = Path("custom.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, path));
  const nlohmann::json json = Fusebox({"inspect", path, "--json"}).Json();
  EXPECT_EQ(json["subgraphs"][0]["nodes"][0]["op"], "CUSTOM:my_op");
  EXPECT_EQ(json["subgraphs"][0]["nodes"][0]["options"]["example_option"], 10);
  const Finished text = Fusebox({"inspect", path});
  EXPECT_THAT(text.out, HasSubstr("CUSTOM:my_op"));
  EXPECT_THAT(text.out, HasSubstr("example_option=10"));
}

TEST(Inspect, TextHasATableOfEachKind) {
  const Finished done = Fusebox({"inspect", WriteAddModel("add.tflite", 1)});
  ASSERT_EQ(done.status, 0) << done.err;
  for (const char* part :
       {"adds", "signature", "serving_default", "x f32[2,3]", "constant bytes", "op  | count", "ADD"})
    EXPECT_THAT(done.out, HasSubstr(part));
}

TEST(Inspect, NamesTheSignaturesThatCanRun) {
  const std::string path = Path("train.tflite");
  ASSERT_TRUE(tflite::WriteFile(*fixtures::OnDevice::Make(), path));
  const nlohmann::json json = Fusebox({"inspect", path, "--json"}).Json();
  std::map<std::string, bool> can;
  for (const auto& s : json["signatures"]) can[s["key"]] = s["can_run"];
  EXPECT_THAT(can, ElementsAre(Pair("infer", true), Pair("restore", false), Pair("save", false),
                               Pair("train", true)));
  EXPECT_THAT(json["signatures"][1]["reason"].get<std::string>(),
              HasSubstr("function restore_function: node 0 FlexRestoreV2"));
  EXPECT_FALSE(json["signatures"][0].contains("reason"));
  const Finished text = Fusebox({"inspect", path});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("infer +\\| yes"));
  EXPECT_THAT(text.out, ContainsRegex("save +\\| no"));
  EXPECT_THAT(text.out, HasSubstr("\nsignature save cannot run: function save_function: "));
  EXPECT_THAT(text.out, Not(HasSubstr("signature infer cannot run")));
}

// One in which nothing runs is told all the same.
TEST(Inspect, ManyInputsHaveATableOfTheirOwn) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  Signature signature{.key = "decode", .function = "main", .output_names = {"sum"}};
  std::vector<ValueId> inputs;
  for (int i = 0; i < 12; ++i) {
    signature.input_names.push_back("cache_" + std::to_string(i));
    inputs.push_back(f.AddInput(type, "value_" + std::to_string(i)));
  }
  f.outputs = f.AddNode(Op::kAddN, inputs, {type}).results;
  module.signatures = {signature};
  const std::string path = Path("many_inputs.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, path));
  const Finished done = Fusebox({"inspect", path});
  EXPECT_THAT(done.out, HasSubstr("cache_0 f32[2], and 11 more | sum f32[2]"));
  EXPECT_THAT(done.out, ContainsRegex("signature decode \\| name +\\| type"));
  EXPECT_THAT(done.out, ContainsRegex("input 11 +\\| cache_11 \\| f32\\[2\\]"));
  EXPECT_THAT(done.out, ContainsRegex("output 0 +\\| sum +\\| f32\\[2\\]"));
}

TEST(Inspect, AMainSubgraphThatCannotRunIsToldToo) {
  auto module = fixtures::OnDevice::Make({"save"});
  module->signatures.clear();
  const std::string path = Path("save.tflite");
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const Finished text = Fusebox({"inspect", path});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("no signatures\nthe main subgraph cannot run: function save_function: "));
  EXPECT_THAT(Fusebox({"inspect", path, "--json"}).Json()["main_reason"].get<std::string>(),
              HasSubstr("no kernel for FlexSaveV2("));
}

TEST(Inspect, NamesCannotTalkToTheTerminal) {
  Module module;
  Function& f = module.Add("ma\x1b[2Jin");
  f.outputs = {f.AddInput({DType::kF32, {2}}, "x\n\xff")};
  const std::string path = Path("names.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, path));
  const Finished text = Fusebox({"inspect", path});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text.out, HasSubstr("ma\\x1b[2Jin"));
  const Finished json = Fusebox({"inspect", path, "--json"});
  ASSERT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(json.Json()["subgraphs"][0]["name"], "ma\x1b[2Jin");
}

TEST(Inspect, DamagedFilesAreErrors) {
  const std::string whole = WriteAddModel("add.tflite", 1);
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (const size_t size : {size_t{0}, size_t{7}, bytes.size() / 2}) {
    std::ofstream(Path("cut.tflite"), std::ios::binary) << bytes.substr(0, size);
    const Finished done = Fusebox({"inspect", Path("cut.tflite")});
    EXPECT_EQ(done.status, 2) << size;
    EXPECT_EQ(done.out, "");
    EXPECT_THAT(done.err, HasSubstr("cut.tflite"));
  }
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table table({"op", "count"});
  table.Row({"ADD", "7"});
  table.Row({"\u00e9", "12"});
  EXPECT_EQ(table.Text(), "op  | count\n----+------\nADD |     7\n\u00e9   |    12\n");
}

}  // namespace
}  // namespace fusebox::cli_test
