// SPDX-License-Identifier: Apache-2.0
#include "cli/base/tables.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns a and b for "{a,b}" and for "WHAT:value in {a->0,b->1} OR {0,1}". CLI11 stores choices only in
// descriptions.
Json ChoicesOf(const std::string& type) {
  Json choices = Json::array();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == type.npos || end == type.npos) return choices;
  for (const std::string& word : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    choices.push_back(word.substr(0, word.find("->")));
  return choices;
}

// Without what validators add: "SECS:FLOAT in [0 - 1]" is SECS.
std::string TypeOf(std::string type) {
  for (const char* added : {":{", ":value in ", ":INT in ", ":UINT in ", ":FLOAT in ", ":SIZE "})
    type.resize(std::min(type.size(), type.find(added)));
  return type;
}

Json TableOf(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const std::string type = option.get_type_name();
  return {{"names", std::move(names)},
          {"help", option.get_description()},
          {"type", TypeOf(type)},
          {"default", option.get_default_str()},
          {"choices", ChoicesOf(type)},
          {"value", option.get_items_expected_max() > 0},
          {"positional", option.get_positional()},
          {"required", option.get_required()}};
}

}  // namespace

Json TablesOf(const CLI::App& app) {
  Json options = Json::array();
  Json commands = Json::array();
  for (const CLI::Option* option : app.get_options()) options.push_back(TableOf(*option));
  for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(TablesOf(*sub));
  return {{"name", app.get_name()},
          {"purpose", app.get_description()},
          {"footer", app.get_footer()},
          {"options", std::move(options)},
          {"commands", std::move(commands)}};
}

std::string HelpOf(const CLI::App& app) {
  const auto subcommands = app.get_subcommands({});
  std::string path = app.get_name();
  for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent())
    path = up->get_name() + " " + path;
  if (subcommands.empty()) return "\n== " + path + "\n\n" + app.help();
  std::string text;
  for (const CLI::App* sub : subcommands) text += HelpOf(*sub);
  return text;
}

}  // namespace fusebox::cli
