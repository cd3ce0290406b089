// SPDX-License-Identifier: Apache-2.0
// The program fusebox. It has none of the converter's libraries: `fusebox convert` and `fusebox model` become
// the program fusebox-convert.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "cli/base/command_line.h"
#include "cli/base/print.h"
#include "host/base/prefix.h"

namespace fusebox::cli {
namespace {

int BecomeConvert(char** argv) {
  const Result<std::string> program = FindHelperProgram("fusebox-convert");
  if (!program) {
    ErrorMessage(std::string(argv[1]) + ": " + program.error().message);
    return static_cast<int>(Exit::kBadInput);
  }
  execv(program->c_str(), argv);
  ErrorMessage(std::string(argv[1]) + ": " + *program + " cannot be run: " + std::strerror(errno));
  return static_cast<int>(Exit::kBadInput);
}

void AddCommands(CLI::App& root, Action& action) {
  root.add_subcommand("convert", kConvertPurpose);  // for --help
  root.add_subcommand("model", kModelPurpose);      // likewise
  AddRun(root, action);
  AddBench(root, action);
  AddCompare(root, action);
  AddVerify(root, action);
  AddReduce(root, action);
  AddInspect(root, action);
  AddCache(root, action);
  AddPlugin(root, action);
  AddCompletion(root, action);
  AddManual(root, action);
  AddHelpAll(root);
}

// Turns the words that people try, `help [COMMAND]` and `version`, into options.
void ReadWords(int argc, char** argv) {
  static char help[] = "--help";
  static char version[] = "--version";
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "version") argv[1] = version;
  if (word != "help") return;
  if (argc > 2) argv[1] = argv[2];
  argv[argc > 2 ? 2 : 1] = help;
}

}  // namespace
}  // namespace fusebox::cli

int main(int argc, char** argv) {
  using namespace fusebox::cli;
  EndIfMemoryIsMissing();
  ReadWords(argc, argv);
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (std::ranges::find(kOfConvert, command) != kOfConvert.end()) return BecomeConvert(argv);
  return RunCommandLine(argc, argv, AddCommands);
}
