// SPDX-License-Identifier: Apache-2.0
// What commands print on a terminal: colors and progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cli/base/progress.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char *kBoldModel = "\x1b[1moutput\x1b[0m", *kRedHead = "\x1b[1;31mfusebox: \x1b[0m";

TEST(Colors, AreForTerminals) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const Finished done = FuseboxOnTerminal({"run", model});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out, HasSubstr(kBoldModel));
  EXPECT_THAT(FuseboxOnTerminal({"run", "missing.tflite"}).out, HasSubstr(kRedHead));
  const Finished piped = Fusebox({"run", model});
  EXPECT_THAT(piped.out + Fusebox({"run", "missing.tflite"}).err, Not(HasSubstr("\x1b")));
}

TEST(Colors, CanBeSetAndRefused) {
  const std::string model = WriteAddModel("add.tflite", 1);
  EXPECT_THAT(Fusebox({"run", model, "--color", "always"}).out, HasSubstr(kBoldModel));
  EXPECT_THAT(Fusebox({"run", "missing.tflite", "--color=always"}).err, HasSubstr(kRedHead));
  for (const Finished& plain :
       {FuseboxOnTerminal({"run", model, "--color", "never"}),
        FuseboxOnTerminal({"run", model}, {"NO_COLOR=1"}), FuseboxOnTerminal({"run", model}, {"TERM=dumb"})})
    EXPECT_THAT(plain.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(FuseboxOnTerminal({"run", model}, {"NO_COLOR="}).out, HasSubstr(kBoldModel))
      << "empty: not set";
  EXPECT_EQ(Fusebox({"run", model, "--color", "red"}).status, 2);
}

TEST(Colors, DoNotMoveColumnsOrReachJson) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const std::string plain = Fusebox({"inspect", model}).out,
                    colored = Fusebox({"inspect", model, "--color", "always"}).out;
  EXPECT_NE(plain, colored);
  EXPECT_EQ(std::regex_replace(colored, std::regex("\x1b\\[[0-9;]*m"), ""), plain);
  EXPECT_EQ(Fusebox({"run", model, "--json", "--color", "always"}).Json()["model"], model);
}

TEST(Colors, OfVerdicts) {
  const std::string one = WriteAddModel("one.tflite", 1), two = WriteAddModel("two.tflite", 2);
  EXPECT_THAT(Fusebox({"compare", one, one, "--color", "always"}).out, HasSubstr("\x1b[32mequal\x1b[0m"));
  EXPECT_THAT(Fusebox({"compare", one, two, "--color", "always"}).out, HasSubstr("\x1b[31mdiffers\x1b[0m"));
}

TEST(ProgressBar, ShowsTheRemainingTime) {
  using std::chrono::seconds;
  EXPECT_EQ(cli::TimeLeft(12), "about 12 s left");
  EXPECT_EQ(cli::TimeLeft(0.1), "about 1 s left");
  EXPECT_EQ(cli::TimeLeft(540), "about 9 min left");
  EXPECT_EQ(cli::TimeLeft(32400), "about 9 h left");
  EXPECT_EQ(cli::SecondsLeft(25, 100, seconds(4)), 12);
  EXPECT_EQ(cli::SecondsLeft(4, 100, seconds(100)), std::nullopt) << "too early";
  EXPECT_EQ(cli::SecondsLeft(50, 100, std::chrono::milliseconds(900)), std::nullopt) << "too early";
  EXPECT_EQ(cli::SecondsLeft(100, 100, seconds(9)), std::nullopt);
  EXPECT_EQ(cli::SecondsLeft(200, 100, seconds(9)), std::nullopt);
  EXPECT_EQ(cli::SecondsLeft(0, 0, seconds(9)), std::nullopt);
}

TEST(ProgressBar, OfCacheBuildIsForTerminals) {
  const std::string model = WriteSample("conv_classifier"), file = Path("model.tflite");
  ASSERT_EQ(Fusebox({"convert", model, "-o", file, "--batch", "1"}).status, 0);
  const std::vector<std::string> build = {
      "cache", "build", file, "--plugin", PluginFolder("fusebox.xnnpack"), "--weight-cache", Path("cache/")};
  const Finished done = FuseboxOnTerminal(build);
  EXPECT_EQ(done.status, 0) << done.out;
  EXPECT_TRUE(std::regex_search(done.out, std::regex("\rpacking weights \\[[# ]{30}\\] +[0-9]+ %, ")))
      << done.out;
}

}  // namespace
}  // namespace fusebox::cli_test
