// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/shells/shells.h"

namespace fusebox::cli {
namespace {

// In single quotes of fish.
std::string FishQuoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out + "'";
}

constexpr const char* kFishBegin = R"(# fish completion of fusebox, written by `fusebox completion fish`.
function __fusebox_at
    set -l path
    for word in (commandline -opc)[2..-1]
        if contains -- (string join ' ' $path $word) )";

constexpr const char* kFishEnd = R"(
            set -a path $word
        end
    end
    test "$path" = "$argv[1]"
end
complete -c fusebox -f
)";

std::string FishValue(const Tables& option) {
  if (!option["value"].get<bool>()) return "";
  switch (WordsOf(option)) {
    case Words::kChoices: return " -x -a " + FishQuoted(fmt::format("{}", fmt::join(ChoicesOf(option), " ")));
    case Words::kFiles: return " -r -F";
    case Words::kFolders: return " -x -a '(__fish_complete_directories)'";
    case Words::kNone: break;
  }
  return " -x";
}

std::string FishOption(const std::string& condition, const Tables& option) {
  std::string names;
  for (const std::string& name : NamesOf(option))
    names +=
        name.starts_with("--") ? " -l " + FishQuoted(name.substr(2)) : " -s " + FishQuoted(name.substr(1));
  return fmt::format("complete -c fusebox {}{}{} -d {}\n", condition, names, FishValue(option),
                     FishQuoted(option["help"].get<std::string>()));
}

std::string FishPlace(const std::string& condition, const Tables& option) {
  if (WordsOf(option) == Words::kNone) return "";
  return fmt::format("complete -c fusebox {}{}\n", condition, FishValue(option));
}

}  // namespace

std::string FishCompletion(const Tables& root) {
  std::string paths;
  std::string lines;
  for (const PathedCommand& command : AllCommands(root)) {
    if (!command.path.empty()) paths += " " + FishQuoted(command.path);
    const std::string condition = "-n " + FishQuoted("__fusebox_at " + ShellQuoted(command.path));
    for (const Tables& sub : (*command.table)["commands"])
      lines += fmt::format("complete -c fusebox {} -a {} -d {}\n", condition,
                           FishQuoted(sub["name"].get<std::string>()),
                           FishQuoted(sub["purpose"].get<std::string>()));
    for (const Tables& option : (*command.table)["options"]) {
      if (!NamesOf(option).empty()) lines += FishOption(condition, option);
      if (option["positional"].get<bool>()) lines += FishPlace(condition, option);
    }
  }
  return kFishBegin + paths.substr(1) + kFishEnd + lines;
}

}  // namespace fusebox::cli
