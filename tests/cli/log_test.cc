// SPDX-License-Identifier: Apache-2.0
// FUSEBOX_LOG: its topics, and values that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "host/base/buffer.h"
#include "host/base/log_topics.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;

Finished WithLog(const char* value, const std::vector<std::string>& arguments) {
  setenv("FUSEBOX_LOG", value, 1);
  const Finished done = Fusebox(arguments);
  unsetenv("FUSEBOX_LOG");
  return done;
}

TEST(LogTopics, AreThoseOfTheSources) {
  std::set<std::string> used, listed;
  const std::regex call(R"re(\bLog\("(\w+)"\))re");
  for (const char* folder : {"host", "converter", "plugins", "cli"})
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::string(FUSEBOX_SOURCE_DIR "/") + folder)) {
      if (!file.is_regular_file() || file.path().extension() != ".cc") continue;
      const std::string text = ReadTextFile(file.path().string()).value_or("");
      for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at)
        used.insert((*at)[1]);
    }
  for (const LogTopic& topic : LogTopics()) listed.emplace(topic.name);
  EXPECT_EQ(used, listed);
}

TEST(LogTopics, AreInTheHelp) {
  const std::string help = Fusebox({"--help"}).out;
  for (const LogTopic& topic : LogTopics())
    EXPECT_THAT(help, HasSubstr("  " + std::string(topic.name) + " "));
}

TEST(LogTopics, AnUnknownOneIsRefusedWithTheList) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const Finished done = WithLog("loader,fussion", {"run", model});
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("FUSEBOX_LOG=loader,fussion: no topic fussion; did you mean \"fusion\"?"));
  EXPECT_THAT(done.err, HasSubstr("\n  shadow"));
  for (const char* valid : {"", "all", "fusion", "fusion,loader", "loader,,all"})
    EXPECT_EQ(WithLog(valid, {"run", model}).status, 0) << valid;
  EXPECT_EQ(WithLog("x", {"convert", model, "-o", Path("o.tflite")}).status, 2);
  EXPECT_EQ(WithLog("x", {"--help"}).status, 0);
}

}  // namespace
}  // namespace fusebox::cli_test
