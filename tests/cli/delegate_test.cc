// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;

const std::string kToys = std::string(FUSEBOX_BUILD_DIR) + "/toys";

// x + 1, where the constant is of another shape than x.
Finished RunToy(std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "run", WriteAddModel("add.tflite", 1), "--plugin", kToys, "--explain", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Fusebox(arguments);
}

std::string Who(const Finished& done) {
  EXPECT_EQ(done.status, 0) << done.err;
  return done.status == 0 ? done.Json()["placements"][0]["runner"].get<std::string>() : "";
}

std::string Why(const Finished& done) { return done.Json()["placements"][0]["reason"].get<std::string>(); }

TEST(Delegate, IsOnByDefaultAndSaysWhyItDeclinesANode) {
  const Finished done = RunToy({});
  EXPECT_EQ(Who(done), "fusebox.cpu");
  EXPECT_EQ(Why(done), "toy: SHAPE: toys do not broadcast");
}

TEST(Delegate, IsTurnedOff) {
  const Finished done = RunToy({"--delegate", "none"});
  EXPECT_EQ(Who(done), "fusebox.cpu");
  EXPECT_EQ(Why(done), "");
  EXPECT_EQ(RunToy({"--delegate", "none", "--delegate", "toy"}).status, 2);
}

TEST(Delegate, TakesOptionsAsJson) {
  EXPECT_THAT(RunToy({"--delegate", R"(toy:{"lie": "create"})"}).err, HasSubstr("delegate toy is not used"));
  const Finished unknown = RunToy({"--delegate", R"(toy:{"lei": "create"})"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"lie\"?"));
  EXPECT_EQ(RunToy({"--delegate", "toy:{"}).status, 2);
}

TEST(Delegate, ThatIsNotThereIsBadUsage) {
  const Finished done = RunToy({"--delegate", "toi"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("did you mean \"toy\"?"));
}

}  // namespace
}  // namespace fusebox::cli_test
