// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/shells/shells.h"

namespace fusebox::cli {
namespace {

// Text in a specification of _arguments or _describe.
std::string ZshEscaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += (c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out;
}

std::string ZshName(const std::string& path) {
  std::string name = "_fusebox" + (path.empty() ? "" : "_" + path);
  std::ranges::replace(name, ' ', '_');
  return name;
}

// ":MODEL:_files".
std::string ZshValue(const Tables& option) {
  if (!option["value"].get<bool>()) return "";
  const std::string type =
      option["type"].get<std::string>().empty() ? "value" : option["type"].get<std::string>();
  const std::string head = ":" + ZshEscaped(type) + ":";
  switch (WordsOf(option)) {
    case Words::kChoices: return fmt::format("{}({})", head, fmt::join(ChoicesOf(option), " "));
    case Words::kFiles: return head + "_files";
    case Words::kFolders: return head + "_files -/";
    case Words::kNone: break;
  }
  return head + " ";
}

// One word of _arguments per name.
std::string ZshSpecifications(const Tables& command) {
  std::string text;
  bool has_place = false;
  for (const Tables& option : command["options"]) {
    for (const std::string& name : NamesOf(option))
      text += " \\\n    " +
              ShellQuoted("*" + name + (option["value"].get<bool>() && name.starts_with("--") ? "=" : "") +
                          "[" + ZshEscaped(option["help"]) + "]" + ZshValue(option));
    if (option["positional"].get<bool>() && !std::exchange(has_place, true))  // it permits one for the rest
      text += " \\\n    " + ShellQuoted("*" + ZshValue(option));
  }
  return text;
}

std::string ZshFunction(const PathedCommand& command) {
  const Tables& table = *command.table;
  std::string text = ZshName(command.path) + "() {\n";
  if (table["commands"].empty()) return text + "  _arguments -s -S" + ZshSpecifications(table) + "\n}\n";
  std::string described;
  std::string cases;
  for (const Tables& sub : table["commands"]) {
    const std::string name = sub["name"];
    described += "\n      " + ShellQuoted(name + ":" + ZshEscaped(sub["purpose"]));
    cases += fmt::format("        {}) {} ;;\n", name,
                         ZshName((command.path.empty() ? "" : command.path + " ") + name));
  }
  text += "  local context state state_descr line\n  typeset -A opt_args\n";
  text += "  _arguments -C" + ZshSpecifications(table) + " \\\n    '1: :->command' '*:: :->rest'\n";
  text += "  case $state in\n    command)\n      local -a commands=(" + described + ")\n";
  text += "      _describe command commands ;;\n    rest)\n      case $words[1] in\n" + cases;
  return text + "      esac ;;\n  esac\n}\n";
}

}  // namespace

std::string ZshCompletion(const Tables& root) {
  std::string text = "#compdef fusebox\n# zsh completion of fusebox, written by `fusebox completion zsh`.\n";
  for (const PathedCommand& command : AllCommands(root)) text += ZshFunction(command);
  return text +
         "if [[ $funcstack[1] == _fusebox ]]; then _fusebox \"$@\"; else compdef _fusebox fusebox; fi\n";
}

}  // namespace fusebox::cli
