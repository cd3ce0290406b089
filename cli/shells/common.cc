// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "cli/shells/shells.h"

namespace fusebox::cli {
namespace {

void AddPaths(const Tables& table, const std::string& path, std::vector<PathedCommand>& out) {
  out.push_back({path, &table});
  for (const Tables& sub : table["commands"])
    AddPaths(sub, (path.empty() ? "" : path + " ") + sub["name"].get<std::string>(), out);
}

}  // namespace

std::vector<PathedCommand> AllCommands(const Tables& root) {
  std::vector<PathedCommand> out;
  AddPaths(root, "", out);
  return out;
}

Words WordsOf(const Tables& option) {
  static constexpr std::array<std::string_view, 7> kFiles = {"FILE",  "PATH", "MODEL", "INPUT",
                                                             "CACHE", "WHAT", "OUT"};
  if (!option["choices"].empty()) return Words::kChoices;
  const std::string type = option["type"];
  const std::string_view word = std::string_view(type).substr(0, type.find_first_of(".|["));
  if (type == "DIR") return Words::kFolders;
  const bool is_file =
      std::ranges::any_of(kFiles, [&](std::string_view file) { return word.starts_with(file); }) ||
      type.ends_with(".tflite") || type.ends_with(".json");
  return is_file && type.find('=') == type.npos ? Words::kFiles : Words::kNone;
}

std::vector<std::string> NamesOf(const Tables& option) { return option["names"]; }
std::vector<std::string> ChoicesOf(const Tables& option) { return option["choices"]; }

std::string ShellQuoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace fusebox::cli
