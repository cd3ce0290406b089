// SPDX-License-Identifier: Apache-2.0
// Completions of shells and the manual page, from the tables of the commands (cli/base/tables.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fusebox::cli {

using Tables = nlohmann::ordered_json;

std::string BashCompletion(const Tables& root);
std::string ZshCompletion(const Tables& root);
std::string FishCompletion(const Tables& root);
std::string ManualPage(const Tables& root, const std::string& version);

// A command with its path below the root: "cache ls"; the root's is empty.
struct PathedCommand {
  std::string path;
  const Tables* table;
};
// The root first, then each command before its subcommands.
std::vector<PathedCommand> AllCommands(const Tables& root);

// The kind of completions for the value of an option or positional argument.
enum class Words { kNone, kChoices, kFiles, kFolders };
Words WordsOf(const Tables& option);
std::vector<std::string> NamesOf(const Tables& option);  // "-o", "--output"
std::vector<std::string> ChoicesOf(const Tables& option);

// In single quotes of a POSIX shell.
std::string ShellQuoted(const std::string& text);

}  // namespace fusebox::cli
