// SPDX-License-Identifier: Apache-2.0
// fusebox completion and man: the scripts are run by their shells, the page is formatted by groff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "host/base/buffer.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

bool Has(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of a program that reads `script`.
std::string OutputOf(const std::string& program, const std::string& script) {
  std::ofstream(Path("script")) << script;
  const std::string out = Path("out");
  const std::string command = "cd '" + Path("") + "' && " + program + " script >out 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << ReadTextFile(out).value_or("");
  return ReadTextFile(out).value_or("");
}

std::string Written(const std::string& name, const std::vector<std::string>& arguments) {
  const Finished done = Fusebox(arguments);
  EXPECT_EQ(done.status, 0) << done.err;
  std::ofstream(Path(name)) << done.out;
  return done.out;
}

// What bash offers for the last word of a command line, whose words bash has split.
std::vector<std::string> Bash(const std::string& words) {
  return LinesOf(OutputOf("bash", "source ./completion.bash\nCOMP_WORDS=(" + words +
                                      ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_fusebox\nprintf '%s\\n' "
                                      "\"${COMPREPLY[@]}\" | sed '/^$/d' | sort\n"));
}

TEST(BashCompletion, OffersCommandsOptionsChoicesAndFiles) {
  Written("completion.bash", {"completion", "bash"});
  std::ofstream(Path("my model.tflite")) << "";
  std::filesystem::create_directory(Path("my folder"));
  EXPECT_EQ(OutputOf("bash -n", Fusebox({"completion", "bash"}).out), "");
  EXPECT_THAT(Bash("fusebox ''"),
              IsSupersetOf({"convert", "run", "bench", "cache", "plugin", "completion", "man"}));
  EXPECT_THAT(Bash("fusebox co"), ElementsAre("compare", "completion", "convert"));
  EXPECT_THAT(Bash("fusebox cache d"), ElementsAre("doctor"));
  EXPECT_THAT(Bash("fusebox cache ls --j"), ElementsAre("--json"));
  EXPECT_THAT(Bash("fusebox convert --ver"), ElementsAre("--verify", "--verify-seed"));
  EXPECT_THAT(Bash("fusebox convert in --verify ''"), ElementsAre("off", "sample", "strict"));
  EXPECT_THAT(Bash("fusebox convert in --verify = s"), ElementsAre("sample", "strict"));
  EXPECT_THAT(Bash("fusebox convert in --verify ="), ElementsAre("off", "sample", "strict"));
  EXPECT_THAT(Bash("fusebox run --missing ''"), ElementsAre("body", "error", "warn"));
  EXPECT_THAT(Bash("fusebox completion ''"), ElementsAre("bash", "fish", "zsh"));
  EXPECT_THAT(Bash("fusebox run my"), ElementsAre("my folder", "my model.tflite"));
  EXPECT_THAT(Bash("fusebox convert x -o my"), ElementsAre("my folder", "my model.tflite"));
  EXPECT_THAT(Bash("fusebox run x --output-dir my"), ElementsAre("my folder"));
  EXPECT_THAT(Bash("fusebox run x --threads ''"), IsEmpty());
  EXPECT_THAT(Bash("fusebox run cache --see"), ElementsAre("--seed")) << "a file that is called as a command";
  EXPECT_THAT(Bash("fusebox --he"), ElementsAre("--help", "--help-all"));
}

TEST(ZshCompletion, IsValid) {
  const std::string text = Written("_fusebox", {"completion", "zsh"});
  EXPECT_THAT(text, testing::StartsWith("#compdef fusebox\n"));
  EXPECT_THAT(text, HasSubstr("_fusebox_cache_doctor() {"));
  EXPECT_THAT(text, HasSubstr("'*--verify=["));
  EXPECT_THAT(text, HasSubstr(":(off sample strict)'"));
  if (!Has("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(OutputOf("zsh -n", text), "");
}

TEST(FishCompletion, IsValid) {
  const std::string text = Written("fusebox.fish", {"completion", "fish"});
  EXPECT_THAT(text, HasSubstr("-l 'verify' -x -a 'off sample strict' -d "));
  if (!Has("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_EQ(OutputOf("fish --no-execute", text), "");
  const std::string offered = OutputOf("fish", "source fusebox.fish\ncomplete -C 'fusebox cache d'\n");
  EXPECT_THAT(offered, testing::StartsWith("doctor\t"));
  const std::string first =
      OutputOf("sh", "fish -c \"source fusebox.fish; complete -C 'fusebox ins'\" 2>&1\n");
  EXPECT_THAT(first, testing::StartsWith("inspect\t")) << "an error?";
}

TEST(Completion, RefusesOtherShells) {
  const Finished done = Fusebox({"completion", "csh"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("{bash,zsh,fish}"));
}

TEST(ManualPage, HasAllCommandsAndNoWarnings) {
  const std::string page = Written("fusebox.1", {"man"});
  for (const char* command : {"convert", "model write", "run", "cache doctor", "plugin check", "completion"})
    EXPECT_THAT(page, HasSubstr(std::string("\n.SS fusebox ") + command + "\n"));
  EXPECT_THAT(page, HasSubstr("\\-\\-dump\\-after"));
  EXPECT_THAT(page, HasSubstr("Exit codes"));
  if (!Has("groff")) GTEST_SKIP() << "groff is not installed";
  EXPECT_EQ(OutputOf("sh", "groff -man -ww -Tascii fusebox.1 2>&1 >/dev/null\n"), "") << "warnings";
  EXPECT_THAT(OutputOf("sh", "groff -man -Tascii -P-cbou fusebox.1\n"), HasSubstr("fusebox cache doctor"));
}

}  // namespace
}  // namespace fusebox::cli_test
