// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/command.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "host/base/buffer.h"
#include "host/tflite/tflite.h"
#include "tests/testing/models/models.h"

namespace fusebox::cli_test {
namespace {

namespace fs = std::filesystem;

std::string Quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

Finished Fusebox(const std::vector<std::string>& arguments, const std::string& program) {
  const std::string out = Path("stdout.txt"), err = Path("stderr.txt");
  std::string line = "FUSEBOX_PLUGIN_PATH= " + Quoted(program.empty() ? FUSEBOX_COMMAND : program);
  for (const std::string& argument : arguments) line += " " + Quoted(argument);
  const int status = std::system((line + " >" + Quoted(out) + " 2>" + Quoted(err)).c_str());
  Finished done;
  done.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  done.out = ReadTextFile(out).value_or("");
  done.err = ReadTextFile(err).value_or("");
  fs::remove(out);
  fs::remove(err);
  return done;
}

Finished FuseboxOnTerminal(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  EXPECT_GE(child, 0);
  if (child == 0) {
    setenv("FUSEBOX_PLUGIN_PATH", "", 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    for (const std::string& setting : environment) putenv(const_cast<char*>(setting.c_str()));
    std::vector<char*> words = {const_cast<char*>(FUSEBOX_COMMAND)};
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  Finished done;
  char block[4096];
  ssize_t count = 0;
  while ((count = read(terminal, block, sizeof block)) > 0)
    done.out.append(block, static_cast<size_t>(count));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  done.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return done;
}

std::string Path(const std::string& name) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  static std::string current;
  const std::string folder =
      testing::TempDir() + "fusebox_cli/" + info->test_suite_name() + "." + info->name() + "/";
  if (folder != current) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    current = folder;
  }
  return folder + name;
}

std::string PluginFolder(const std::string& id) { return std::string(FUSEBOX_BUILD_DIR "/plugins/") + id; }

std::string WriteAddModel(const std::string& name, float addend) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2, 3}};
  const ValueId x = f.AddInput(type, "x_tensor");
  const ValueId c = f.AddConst<float>(DType::kF32, {1}, {addend}, "c");
  const ValueId y = f.AddNode(Op::kAdd, {x, c}, {type}).results[0];
  f.value(y).name = "y_tensor";
  f.outputs = {y};
  module.signatures.push_back({"serving_default", "main", {"x"}, {"y"}});
  module.description = "adds";
  const std::string path = Path(name);
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

std::string WriteSample(const std::string& name) {
  const std::string path = Path(name);
  const samples::SampleModel* sample = test_models::FindModel(name);
  const Status written = sample ? sample->write(path, 1) : NotFound("sample " + name);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fusebox::cli_test
