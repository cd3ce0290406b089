// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/shells/shells.h"

namespace fusebox::cli {
namespace {

constexpr const char* kBashBegin = R"(# bash completion of fusebox, written by `fusebox completion bash`.
_fusebox() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= i
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${COMP_WORDS[i]}" in
)";

// Values that may have spaces are completed one per line.
constexpr const char* kBashEnd = R"(}
_fusebox_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_fusebox_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); }
_fusebox_folders() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); }
complete -F _fusebox fusebox
)";

std::string BashAction(const Tables& option) {
  switch (WordsOf(option)) {
    case Words::kChoices:
      return "_fusebox_words " + ShellQuoted(fmt::format("{}", fmt::join(ChoicesOf(option), " ")));
    case Words::kFiles: return "_fusebox_files";
    case Words::kFolders: return "_fusebox_folders";
    case Words::kNone: break;
  }
  return ":";
}

// The case of each option that has a value.
std::string BashCases(const PathedCommand& command) {
  std::string text;
  for (const Tables& option : (*command.table)["options"]) {
    if (!option["value"].get<bool>() || NamesOf(option).empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : NamesOf(option))
      patterns.push_back(ShellQuoted(command.path + " " + name));
    text += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), BashAction(option));
  }
  return text;
}

std::string BashNames(const Tables& command) {
  std::vector<std::string> names;
  for (const Tables& option : command["options"])
    for (const std::string& name : NamesOf(option)) names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

// Returns the completion of a positional word: a subcommand, or the first positional argument.
std::string BashPlace(const Tables& command) {
  std::vector<std::string> subcommands;
  for (const Tables& sub : command["commands"]) subcommands.push_back(sub["name"]);
  if (!subcommands.empty())
    return "_fusebox_words " + ShellQuoted(fmt::format("{}", fmt::join(subcommands, " ")));
  for (const Tables& option : command["options"])
    if (option["positional"].get<bool>()) return BashAction(option);
  return ":";
}

}  // namespace

std::string BashCompletion(const Tables& root) {
  std::string text = kBashBegin;
  std::string options;
  std::string names;
  std::string places;
  for (const PathedCommand& command : AllCommands(root)) {
    if (!command.path.empty())
      text += fmt::format("      {}) path={} ;;\n", ShellQuoted(" " + command.path),
                          ShellQuoted(" " + command.path));
    const PathedCommand spaced{command.path.empty() ? "" : " " + command.path, command.table};
    options += BashCases(spaced);
    names += fmt::format("      {}) _fusebox_words {} ;;\n", ShellQuoted(spaced.path),
                         ShellQuoted(BashNames(*command.table)));
    places += fmt::format("    {}) {} ;;\n", ShellQuoted(spaced.path), BashPlace(*command.table));
  }
  text += "    esac\n  done\n  case \"$path $prev\" in\n" + options + "  esac\n";
  text += "  if [[ $cur == -* ]]; then\n    case \"$path\" in\n" + names + "    esac\n    return\n  fi\n";
  return text + "  case \"$path\" in\n" + places + "  esac\n" + kBashEnd;
}

}  // namespace fusebox::cli
