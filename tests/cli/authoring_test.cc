// SPDX-License-Identifier: Apache-2.0
// fusebox plugin new and fusebox model write: usage. tests/install builds what they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/base/buffer.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;

TEST(PluginNew, WritesTheFilesOfTheParts) {
  const auto names = [](const std::vector<std::string>& flags) {
    const std::string folder = Path("p" + std::to_string(flags.size()) + flags.back());
    std::vector<std::string> line = {"plugin", "new", "swish", "-o", folder};
    line.insert(line.end(), flags.begin(), flags.end());
    EXPECT_EQ(Fusebox(line).status, 0);
    return FilesBelow(folder);
  };
  const std::vector<std::string> c_plus_plus = {"CMakeLists.txt", "README.md",           "body.json",
                                                "exports.map",    "fusebox-plugin.json", "swish.cc"};
  EXPECT_EQ(names({"--rule"}), c_plus_plus);
  EXPECT_EQ(names({"--lang", "c"})[5], "swish.c");
  EXPECT_EQ(names({"--declarative"}),
            (std::vector<std::string>{"CMakeLists.txt", "README.md", "body.json", "fusebox-plugin.json"}));
}

TEST(PluginNew, LeavesNothingOfTheTemplate) {
  ASSERT_EQ(Fusebox({"plugin", "new", "swish", "-o", Path("p"), "--rule", "--kernel", "--delegate"}).status,
            0);
  for (const std::string& file : FilesBelow(Path("p"))) {
    const std::string text = *ReadTextFile(Path("p/") + file);
    EXPECT_EQ(text.find('@'), std::string::npos) << file;
    EXPECT_THAT(text, HasSubstr(file.ends_with("body.json") || file.ends_with(".map") ? "" : "swish"));
  }
}

TEST(PluginNew, DeclaredPluginNeedsNoBuild) {
  ASSERT_EQ(Fusebox({"plugin", "new", "swish", "-o", Path("p"), "--declarative"}).status, 0);
  EXPECT_EQ(Fusebox({"plugin", "why", Path("p")}).status, 0);
}

TEST(PluginNew, RefusesWhatItCannotWrite) {
  for (const char* name : {"Swish", "1st", "a-b", "../x", "_x"}) {
    const Finished done = Fusebox({"plugin", "new", name, "-o", Path("p")});
    EXPECT_EQ(done.status, 2) << name;
    EXPECT_THAT(done.err, HasSubstr("not a name of a plugin"));
  }
  for (const char* name : {"all", "install", "none", "test"}) {
    const Finished done = Fusebox({"plugin", "new", name, "-o", Path("p")});
    EXPECT_EQ(done.status, 2) << name;
    EXPECT_THAT(done.err,
                HasSubstr("reserves this name; use another one, such as " + std::string(name) + "_op"));
  }
  EXPECT_THAT(Fusebox({"plugin", "new", "a", "-o", Path("p"), "--rule", "--declarative"}).err,
              HasSubstr("exclude each other"));
  EXPECT_EQ(Fusebox({"plugin", "new", "a", "-o", Path("p"), "--lang", "rust"}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(Path("p")));
  std::filesystem::create_directories(Path("there"));
  const Finished done = Fusebox({"plugin", "new", "a", "-o", Path("there")});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("exists already"));
}

TEST(ModelWrite, WritesAModelThatConverts) {
  std::ofstream(Path("body.json")) << R"({"inputs": ["x"],
    "ops": [{"op": "Neg", "inputs": ["x"], "results": ["y"]}], "outputs": ["y"]})";
  const Finished written =
      Fusebox({"model", "write", "--composite", "acme.neg", "--attr", "mode=up", "--attr", "axes=[1,2]",
               "--input", "f32[2,3]", "--body", Path("body.json"), "-o", Path("neg.tflite")});
  ASSERT_EQ(written.status, 0) << written.err;
  const Finished inspected = Fusebox({"inspect", Path("neg.tflite"), "--json"});
  EXPECT_THAT(inspected.out, HasSubstr("acme.neg"));
}

TEST(ModelWrite, RefusesBadFlags) {
  std::ofstream(Path("body.json")) << R"({"inputs": ["x"], "ops": [], "outputs": ["x"]})";
  const auto error = [](const std::vector<std::string>& flags) {
    std::vector<std::string> line = {"model",  "write",           "--composite", "a",
                                     "--body", Path("body.json"), "-o",          Path("m")};
    line.insert(line.end(), flags.begin(), flags.end());
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2);
    return done.err;
  };
  EXPECT_THAT(error({"--attr", "mode"}), HasSubstr("--attr mode: is not KEY=VALUE"));
  EXPECT_THAT(error({"--attr", "a=1", "--attr", "a=2"}), HasSubstr("given twice"));
  EXPECT_THAT(error({"--attr", "a=null"}), HasSubstr("--attr a: null is not allowed"));
  EXPECT_THAT(error({"--input", "f33[2]"}), HasSubstr("--input: \"f33[2]\" is no type"));
  EXPECT_THAT(error({"--inputs", "f32[2]"}), HasSubstr("did you mean \"--input\"?"));
  EXPECT_FALSE(std::filesystem::exists(Path("m")));
}

}  // namespace
}  // namespace fusebox::cli_test
