// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cli/base/print.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;

TEST(Usage, HelpOfEachSubcommandHasAnExample) {
  for (const char* command : {"convert", "run", "compare", "verify", "inspect", "cache", "plugin", "model"}) {
    const Finished done = Fusebox({command, "--help"});
    EXPECT_EQ(done.status, 0) << command;
    EXPECT_THAT(done.out, HasSubstr(std::string("  fusebox ") + command)) << done.out;
    EXPECT_EQ(done.err, "");
  }
}

TEST(Usage, VersionIsTheProjects) {
  const Finished done = Fusebox({"--version"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out, testing::StartsWith("fusebox " FUSEBOX_VERSION "\nplugin ABI 1.0\n"));
  for (const char* library :
       {"flatbuffers", "XNNPACK", "protobuf", "hdf5", "re2", "CLI11", "spdlog", "nlohmann-json"})
    EXPECT_TRUE(std::regex_search(done.out, std::regex("\n  " + std::string(library) + "\\S* +\\S*[0-9]")))
        << library;
  EXPECT_EQ(Fusebox({"convert", "--version"}).status, 2) << "of the program only";
}

TEST(Usage, WordsThatPeopleTry) {
  const std::string version = Fusebox({"--version"}).out;
  EXPECT_EQ(Fusebox({"version"}).out, version);
  EXPECT_EQ(Fusebox({"-v"}).out, version);
  EXPECT_EQ(Fusebox({"help"}).out, Fusebox({"--help"}).out);
  for (const char* command : {"run", "convert"}) {
    const Finished help = Fusebox({"help", command});
    EXPECT_EQ(help.status, 0) << help.err;
    EXPECT_EQ(help.out, Fusebox({command, "--help"}).out);
  }
}

TEST(Usage, AllHelpHasEachCommand) {
  const Finished done = Fusebox({"--help-all"});
  EXPECT_EQ(done.status, 0) << done.err;
  for (const char* command : {"convert", "model write", "run", "bench", "compare", "verify", "reduce",
                              "inspect", "cache ls", "cache doctor", "plugin check", "completion", "man"}) {
    const std::string head = std::string("\n== fusebox ") + command + "\n\n";
    const size_t first = done.out.find(head);
    EXPECT_NE(first, done.out.npos) << command;
    EXPECT_EQ(done.out.find(head, first + 1), done.out.npos) << command;
  }
  EXPECT_THAT(done.out, HasSubstr("--dump-after"));
}

TEST(Usage, HelpHasExitCodes) {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"run", "--help"},
                                             {"convert", "--help"},
                                             {"cache", "ls", "--help"},
                                             {"plugin", "check", "--help"}})
    EXPECT_TRUE(std::regex_search(Fusebox(line).out, std::regex("[Ee]xit codes?"))) << line[0];
}

TEST(Usage, NoCommandIsBadUsage) {
  const Finished done = Fusebox({});
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("--help"));
}

TEST(Usage, UnknownCommandIsToldWithItsNeighbor) {
  const Finished done = Fusebox({"inspec", "x.tflite"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("unknown command inspec; did you mean \"inspect\"?"));
}

TEST(Usage, UnknownOptionIsToldWithItsNeighbor) {
  const Finished done = Fusebox({"convert", "in", "--ouput", "x", "--explain"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("unknown option --ouput; did you mean \"--output\"?"));
  EXPECT_THAT(done.err, HasSubstr("fusebox convert --help"));
}

TEST(Usage, OptionsOfBenchmarkModelAreToldWithTheirSuccessors) {
  const auto error = [](const std::string& option) {
    const Finished done = Fusebox({"bench", "--graph=x.tflite", option});
    EXPECT_EQ(done.status, 2) << option;
    return done.err;
  };
  EXPECT_THAT(error("--use_xnnpack=false"),
              HasSubstr("unknown option --use_xnnpack; XNNPACK runs what it can"));
  EXPECT_THAT(error("--input_layer=x"), HasSubstr("; use --shape NAME=1,28,28"));
  EXPECT_THAT(error("--use_gpu=true"), HasSubstr("; no GPU delegate is installed"));
}

TEST(Usage, EqualNoticesArePrintedOnceWithTheirNumber) {
  ::testing::internal::CaptureStderr();
  cli::PrintNotices("m.tflite", std::vector<std::string>{"slow", "declined", "slow"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fusebox: m.tflite: slow (2 times)\nfusebox: m.tflite: declined\n");
}

TEST(Usage, BadValuesNameTheirFlag) {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"convert", "in", "-o", "out", "--batch", "0"},
                                             {"convert", "in", "-o", "out", "--composites", "melt"},
                                             {"convert", ".", "-o", "out", "--shape", "x"},
                                             {"convert", ".", "-o", "out", "--shape", "x=1,,2"},
                                             {"convert", ".", "-o", "out", "--shape", "x=1,"},
                                             {"run", "m.tflite", "--runs", "0"},
                                             {"run", "m.tflite", "--seed", "one"},
                                             {"run", "m.tflite", "--seed", "-1"},
                                             {"run", "m.tflite", "--seed", "18446744073709551616"},
                                             {"run", "m.tflite", "--signature", ""},
                                             {"run", "m.tflite", "--weight-cache", ""},
                                             {"run", "m.tflite", "--input-dir", ""},
                                             {"run", "m.tflite", "--output-dir", ""},
                                             {"convert", "in", "-o", "out", "--report", ""},
                                             {"convert", "in", "-o", "out", "--verify-seed", "1.5"},
                                             {"verify", "m.tflite", "--seed", "-1"},
                                             {"compare", "a", "b", "--seed", "-1"},
                                             {"compare", "a", "b", "--rtol", "nan"},
                                             {"compare", "a", "b", "--rtol", "inf"},
                                             {"compare", "a", "b", "--atol", "-1"}}) {
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2) << line.back();
    EXPECT_THAT(done.err, HasSubstr(line[line.size() - 2])) << line.back();
  }
}

TEST(Usage, DumpAfterKnowsThePasses) {
  const Finished done = Fusebox({"convert", ".", "-o", Path("out"), "--dump-after", "fus"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("did you mean \"fuse\"?"));
  EXPECT_THAT(done.err, HasSubstr("\n  finish             set op versions, names and metadata"));
}

TEST(Usage, AFullDiskIsAnError) {
  const std::string model = WriteAddModel("add.tflite", 1);
  EXPECT_EQ(
      std::system(("'" FUSEBOX_COMMAND "' inspect '" + model + "' >/dev/full 2>/dev/null").c_str()) >> 8, 2);
}

}  // namespace
}  // namespace fusebox::cli_test
