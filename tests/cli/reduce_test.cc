// SPDX-License-Identifier: Apache-2.0
// fusebox reduce: the smallest part of a model for which a command still fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kNodes = 400;

// x f32[1,4], then y = -x, z = -y, ...: but CEIL at node 100 and ABS at node 250.
std::string WriteChain() {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {1, 4}};
  ValueId x = f.AddInput(type, "x");
  for (int i = 0; i < kNodes; ++i)
    x = f.AddNode(i == 250 ? Op::kAbs : i == 100 ? Op::kCeil : Op::kNeg, {x}, {type}).results[0];
  f.outputs = {x};
  const Status written = tflite::WriteFile(module, Path("chain.tflite"));
  EXPECT_TRUE(written) << written.error().message;
  return Path("chain.tflite");
}

// A command that ends with status 1 if the model has these ops.
std::string Finds(const std::vector<std::string>& ops) {
  std::string out = "text=$(" FUSEBOX_COMMAND " inspect {}) || exit 9; ";
  for (const std::string& op : ops) out += "echo \"$text\" | grep -qw " + op + " || exit 0; ";
  return out + "exit 1";
}

std::vector<std::string> OpsOf(const json& report) {
  std::vector<std::string> out;
  for (const json& node : report["nodes"]) out.push_back(node["op"]);
  return out;
}

TEST(Reduce, FindsTheNodeOfFourHundred) {
  const std::string small = Path("small.tflite");
  const Finished done = Fusebox({"reduce", WriteChain(), "--fails", Finds({"ABS"}), "-o", small, "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json report = done.Json();
  EXPECT_THAT(OpsOf(report), ElementsAre("ABS"));
  EXPECT_EQ(report["nodes"][0]["node"], 250);
  EXPECT_EQ(report["before"], kNodes);
  EXPECT_LT(report["runs"], 40);
  const auto module = tflite::ReadFile(small);
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->functions[0]->nodes.size(), 1u);
}

TEST(Reduce, KeepsNodesThatFailTogether) {
  const Finished done = Fusebox(
      {"reduce", WriteChain(), "--fails", Finds({"ABS", "CEIL"}), "-o", Path("small.tflite"), "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(OpsOf(done.Json()), ElementsAre("CEIL", "ABS"));
}

TEST(Reduce, KeepsTheValuesOfTheWholeModel) {
  const std::string model = WriteChain(), small = Path("small.tflite");
  const Finished done = Fusebox({"reduce", model, "--fails", Finds({"CEIL"}), "-o", small, "--seed", "5"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("nodes kept: 1 of 400 (status 1, "));
  Finished run = Fusebox({"run", model, "--seed", "5", "--output-dir", Path("whole")});
  const auto kept = ReadNpy(small + ".inputs/in0.npy"), first = ReadNpy(Path("whole/in0.npy"));
  ASSERT_TRUE(kept && first);
  EXPECT_TRUE(*kept == *first) << "100 times -x is x";
  EXPECT_EQ(Fusebox({"run", small, "--input-dir", small + ".inputs"}).status, 0);
}

TEST(Reduce, RefusesCommandsThatDoNotFail) {
  const std::string model = WriteChain(), small = Path("small.tflite");
  const auto expect = [&](const std::string& command, const std::string& text,
                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> line = {"reduce", model, "--fails", command, "-o", small};
    line.insert(line.end(), more.begin(), more.end());
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(small));
  };
  expect("true {}", "ends with status 0 for the whole model");
  expect("false", "has no {}");
  expect("exit 3 # {}", "ends with status 3 for the whole model, not 4", {"--status", "4"});
}

}  // namespace
}  // namespace fusebox::cli_test
