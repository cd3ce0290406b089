// SPDX-License-Identifier: Apache-2.0
// `inspect` of a file with Flex ops, which it imports as `run` does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "converter/words.h"
#include "tests/cli/command.h"
#include "tests/testing/flex.h"

namespace fusebox::cli_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Pair;

// The import replaces a loop over tensor lists by one op, which keeps the names of the loop.
TEST(InspectImport, AFusedOpListsTheLoopThatItReplaced) {
  auto conversion = converter::FromPath(WriteSample("keras_lstm"));
  ASSERT_TRUE(conversion) << conversion.error().message;
  const std::string path = Path("flex.tflite");
  ASSERT_TRUE(testing::WriteFlex(*std::move(conversion), path));
  const std::vector<std::string> plugin = {"--plugin", PluginFolder("fusebox.rnn")};
  const Finished done = Fusebox({"inspect", path, plugin[0], plugin[1], "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const nlohmann::json document = done.Json();
  size_t listed = 0;
  for (const auto& graph : document["subgraphs"]) {
    for (const auto& node : graph["nodes"]) {
      if (node["op"] != "UNIDIRECTIONAL_SEQUENCE_LSTM") continue;
      ++listed;
      const nlohmann::json replaces = node["fused"].value("replaces", nlohmann::json::array());
      std::map<std::string, int> ops;
      for (const auto& one : replaces) ++ops[one["op"]];
      EXPECT_THAT(ops, ::testing::IsSupersetOf({Pair("WHILE", 1), Pair("TENSOR_LIST_STACK", 1)}));
      const auto loop = std::ranges::find(replaces, "WHILE", [](const auto& one) { return one["op"]; });
      ASSERT_NE(loop, replaces.end());
      EXPECT_THAT((*loop)["name"].get<std::string>(), HasSubstr("sequential/lstm/"));
    }
  }
  EXPECT_EQ(listed, 1u);
  const Finished text = Fusebox({"inspect", path, plugin[0], plugin[1]});
  EXPECT_THAT(text.out,
              ContainsRegex("fused by fusebox.rnn [0-9.]+ instead of a loop: [0-9]+ nodes \\([0-9]+ [A-Z]"));
}

}  // namespace
}  // namespace fusebox::cli_test
