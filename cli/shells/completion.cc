// SPDX-License-Identifier: Apache-2.0
// fusebox completion, fusebox man and --help-all: all commands, including the commands of fusebox-convert.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "cli/base/command.h"
#include "cli/base/print.h"
#include "cli/base/tables.h"
#include "cli/shells/shells.h"
#include "host/base/json.h"
#include "host/base/prefix.h"

namespace fusebox::cli {
namespace {

constexpr const char* kCompletionFooter = R"(An installed fusebox has completions already. Of a build tree:
  source <(fusebox completion bash)
  source <(fusebox completion zsh)
  fusebox completion fish | source

Examples:
  fusebox completion bash > ~/.local/share/bash-completion/completions/fusebox)";

constexpr const char* kManFooter = R"(Examples:
  fusebox man | man -l -)";

// Returns the output of fusebox-convert for a word of cli/base/tables.h.
Result<std::string> FromConvert(const char* word) {
  FUSEBOX_ASSIGN(const std::string program, FindHelperProgram("fusebox-convert"));
  struct Close {
    void operator()(FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<FILE, Close> pipe(popen((ShellQuoted(program) + " " + word).c_str(), "r"));
  if (pipe == nullptr) return IoError(program + ": cannot be started");
  std::string text;
  char block[4096];
  while (const size_t count = std::fread(block, 1, sizeof block, pipe.get())) text.append(block, count);
  if (text.empty()) return IoError(program + ": printed no " + word);
  return text;
}

// Returns the tables of all commands. fusebox-convert describes the commands that it implements.
Result<Tables> AllTables(const CLI::App& root) {
  FUSEBOX_ASSIGN(const std::string text, FromConvert(kTablesWord));
  FUSEBOX_ASSIGN(const nlohmann::json checked, ParseJson(text, "fusebox-convert"));
  const Tables others = Tables::parse(text);
  Tables tables = TablesOf(root);
  for (Tables& command : tables["commands"])
    for (const Tables& other : others["commands"])
      if (command["name"] == other["name"]) command = other;
  return tables;
}

std::string AllHelp(const CLI::App& root) {
  std::string text = root.help() + FromConvert(kHelpWord).value_or("");
  for (const CLI::App* command : root.get_subcommands({}))
    if (std::ranges::find(kOfConvert, command->get_name()) == kOfConvert.end()) text += HelpOf(*command);
  return text;
}

}  // namespace

void AddCompletion(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("completion", "Print a completion script for a shell");
  auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "The shell")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  app->footer(kCompletionFooter);
  app->callback([shell, &root, &action] {
    action = [shell, &root]() -> Result<Exit> {
      static const std::map<std::string, std::string (*)(const Tables&)> scripts = {
          {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};
      FUSEBOX_ASSIGN(const Tables tables, AllTables(root));
      Print(scripts.at(*shell)(tables));
      return Exit::kDone;
    };
  });
}

void AddManual(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("man", "Print the manual page, in roff");
  app->footer(kManFooter);
  app->callback([&root, &action] {
    action = [&root]() -> Result<Exit> {
      FUSEBOX_ASSIGN(const Tables tables, AllTables(root));
      Print(ManualPage(tables, FUSEBOX_VERSION));
      return Exit::kDone;
    };
  });
}

void AddHelpAll(CLI::App& root) {
  root.add_flag_callback(
      "--help-all",
      [&root] {
        Print(AllHelp(root));
        throw CLI::Success();
      },
      "Print the help of all commands");
}

}  // namespace fusebox::cli
