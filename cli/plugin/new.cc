// SPDX-License-Identifier: Apache-2.0
// fusebox plugin new: a folder with a small plugin, from the templates of the SDK.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "cli/base/command.h"
#include "cli/base/print.h"
#include "cli/plugin/commands.h"
#include "host/base/buffer.h"
#include "host/base/prefix.h"
#include "host/plugin/steps.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

struct NewFlags {
  std::string name;
  std::string output;
  std::string language = "c++";
  bool rule = false;
  bool kernel = false;
  bool delegate = false;
  bool declarative = false;
};

// The inputs of a template: words for `@if`, and texts for `@NAME@`.
struct Expansion {
  std::set<std::string, std::less<>> words;
  std::map<std::string, std::string, std::less<>> texts;
};

// "a !b": all words without `!` are set, all others are not.
bool Holds(const std::string& condition, const Expansion& expansion) {
  std::istringstream words(condition);
  for (std::string word; words >> word;) {
    const bool negated = word.starts_with('!');
    if (expansion.words.contains(word.substr(negated ? 1 : 0)) == negated) return false;
  }
  return true;
}

std::string WithTexts(std::string line, const Expansion& expansion) {
  for (const auto& [name, text] : expansion.texts) {
    const std::string key = "@" + name + "@";
    for (size_t at = line.find(key); at != line.npos; at = line.find(key, at + text.size()))
      line.replace(at, key.size(), text);
  }
  return line;
}

// Keeps the lines between `@if CONDITION` and `@end` whose condition holds, and replaces the texts.
std::string Expand(const std::string& source, const Expansion& expansion) {
  std::istringstream lines(source);
  std::string out;
  bool kept = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("@if ")) kept = Holds(line.substr(4), expansion);
    else if (line == "@end") kept = true;
    else if (kept) out += WithTexts(line, expansion) + "\n";
  }
  return out;
}

Result<fs::path> FindTemplate(const std::string& name) {
  std::string tried;
  for (const std::string& prefix : InstallPrefixes()) {
    const std::string folder = prefix + "/share/fusebox/template/" + name;
    if (access(folder.c_str(), R_OK | X_OK) == 0) return fs::path(folder);
    tried += (tried.empty() ? "" : ", ") + folder;
  }
  return NotFound("the SDK of Fusebox is not installed (tried " + tried + "); install its component dev");
}

Expansion ExpansionOf(const NewFlags& flags) {
  const bool library = flags.rule || flags.kernel || flags.delegate;
  const bool is_c = flags.language == "c";
  Expansion out;
  const auto set = [&](const char* word, bool is) {
    if (is) out.words.insert(word);
  };
  set("rule", flags.rule);
  set("kernel", flags.kernel);
  set("delegate", flags.delegate);
  set("declarative", flags.declarative);
  set("library", library);
  set("c", is_c);
  set("c++", !is_c);
  set("declines", flags.rule || flags.kernel);
  set("computes", flags.kernel || flags.delegate);
  set("composite", flags.rule || flags.kernel || flags.declarative);
  const auto when = [](bool is, const char* text) { return std::string(is ? text : ""); };
  const std::string version = FUSEBOX_VERSION;
  out.texts = {
      {"NAME", flags.name},
      {"EXTENSION", is_c ? "c" : "cc"},
      {"PLATFORM", std::string(PlatformKey())},
      {"FUSEBOX_VERSION", version.substr(0, version.rfind('.'))},
      // Without a rule, only this attribute turns the composite into the op.
      {"FUSABLE", when(flags.kernel && !flags.rule && !flags.declarative, "--attr tfl_fusable_op=true ")},
      {"CLASSES",
       when(flags.rule, ", Rule") + when(flags.kernel, ", Kernel") + when(flags.delegate, ", Delegate")}};
  return out;
}

// Returns the file's name in the new folder, or an empty string if the file is not for this plugin.
std::string TargetName(const std::string& source, const NewFlags& flags, const Expansion& expansion) {
  const std::string name = fs::path(source).stem().string();  // without ".in"
  const bool library = expansion.words.contains("library");
  const bool is_c = flags.language == "c";
  if (name == "plugin.cc") return library && !is_c ? flags.name + ".cc" : "";
  if (name == "plugin.c") return library && is_c ? flags.name + ".c" : "";
  if (name == "exports.map") return library ? name : "";
  return name;
}

Status CheckName(const std::string& name) {
  const bool good = !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
                    name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
  if (!good)
    return Invalid(
        "plugin new " + name +
        ": not a name of a plugin; use lower-case letters, digits and underscores, a letter first");
  // Targets of CMake, and --delegate none.
  constexpr std::string_view kReserved[] = {"all",        "clean",         "edit_cache", "help",
                                            "install",    "none",          "package",    "package_source",
                                            "preinstall", "rebuild_cache", "test"};
  if (std::ranges::find(kReserved, name) == std::end(kReserved)) return {};
  return Invalid("plugin new " + name + ": CMake or Fusebox reserves this name; use another one, such as " +
                 name + "_op");
}

Result<Exit> New(NewFlags flags) {
  FUSEBOX_TRY(CheckName(flags.name));
  if (!flags.rule && !flags.kernel && !flags.delegate && !flags.declarative) flags.rule = flags.kernel = true;
  if (flags.rule && flags.declarative)
    return Invalid("plugin new: --rule and --declarative exclude each other; a rule is code or manifest");
  const std::string folder = flags.output.empty() ? flags.name : flags.output;
  FUSEBOX_ASSIGN(const fs::path source, FindTemplate("plugin"));
  const Expansion expansion = ExpansionOf(flags);
  std::error_code error;
  if (fs::exists(folder, error)) return Invalid(folder + ": exists already; choose another name or -o DIR");
  fs::create_directories(folder, error);
  if (error) return IoError(folder + ": " + error.message());
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source, error)) files.insert(entry.path());
  if (error) return IoError(source.string() + ": " + error.message());
  for (const fs::path& file : files) {
    const std::string name = TargetName(file.filename().string(), flags, expansion);
    if (name.empty()) continue;
    FUSEBOX_ASSIGN(const std::string text, ReadTextFile(file.string()));
    const std::string out = Expand(text, expansion);
    const std::string path = folder + "/" + name;
    FUSEBOX_TRY(WriteFile(path, std::as_bytes(std::span(out))));
    Print(path + "\n");
  }
  return Exit::kDone;
}

}  // namespace

void AddPluginNew(CLI::App& plugin, Action& action) {
  CLI::App* app = plugin.add_subcommand(
      "new", "Write the folder of a new plugin, which builds and passes its tests unchanged");
  auto flags = std::make_shared<NewFlags>();
  app->add_option("name", flags->name, "Name: lower-case letters, digits, underscores")
      ->type_name("NAME")
      ->required();
  app->add_option("-o,--output", flags->output, "The folder; absent: NAME")->type_name("DIR");
  app->add_option("--lang", flags->language, "Language of the code")
      ->check(CLI::IsMember({"c", "c++"}))
      ->type_name("")
      ->capture_default_str();
  app->add_flag("--rule", flags->rule, "With a fusion rule in code (default, with --kernel)");
  app->add_flag("--kernel", flags->kernel, "With a custom op and its kernel");
  app->add_flag("--delegate", flags->delegate, "With a delegate");
  app->add_flag("--declarative", flags->declarative,
                "With a fusion rule in the manifest; alone: a plugin without code");
  app->callback([flags, &action] { action = [flags] { return New(*flags); }; });
}

}  // namespace fusebox::cli
