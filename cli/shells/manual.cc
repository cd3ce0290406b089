// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/shells/shells.h"

namespace fusebox::cli {
namespace {

// Text of roff: no requests, no escapes, hyphens that can be copied.
std::string Roff(const std::string& text) {
  std::string out;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    starts = c == '\n';
  }
  return out;
}

// Lines as they are.
std::string RoffBlock(const std::string& text) {
  return text.empty() ? "" : ".PP\n.nf\n" + Roff(text) + "\n.fi\n";
}

std::string RoffOption(const Tables& option) {
  std::vector<std::string> names;
  for (const std::string& name : NamesOf(option)) names.push_back("\\fB" + Roff(name) + "\\fR");
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  const std::string type = option["type"];
  const std::string value = type.empty() ? fmt::format("{}", fmt::join(ChoicesOf(option), "|")) : type;
  if (option["value"].get<bool>() && !value.empty())
    head += (head.empty() ? "" : " ") + ("\\fI" + Roff(value) + "\\fR");
  const std::string otherwise = option["default"];
  std::string text = ".TP\n" + head + "\n" + Roff(option["help"]);
  if (!ChoicesOf(option).empty() && !type.empty())
    text += Roff(fmt::format(" ({})", fmt::join(ChoicesOf(option), ", ")));
  if (option["required"].get<bool>()) text += ". Required";
  if (!otherwise.empty()) text += Roff(". Default: " + otherwise);
  return text + "\n";
}

std::string RoffOptions(const Tables& command) {
  std::string text;
  for (const Tables& option : command["options"]) text += RoffOption(option);
  return text;
}

}  // namespace

std::string ManualPage(const Tables& root, const std::string& version) {
  std::string text = fmt::format(".TH FUSEBOX 1 \"\" \"fusebox {}\" \"User Commands\"\n", version);
  text +=
      ".SH NAME\nfusebox \\- convert models to .tflite, fuse their composites with plugins, and run them\n";
  text +=
      ".SH SYNOPSIS\n\\fBfusebox\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH OPTIONS\n" + RoffOptions(root);
  text += ".SH COMMANDS\n";
  for (const PathedCommand& command : AllCommands(root)) {
    if (command.path.empty()) continue;
    text += ".SS fusebox " + Roff(command.path) + "\n" + Roff((*command.table)["purpose"]) + ".\n";
    text += RoffOptions(*command.table) + RoffBlock((*command.table)["footer"]);
  }
  return text + ".SH NOTES\n" + RoffBlock(root["footer"]).substr(4);
}

}  // namespace fusebox::cli
