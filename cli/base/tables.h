// SPDX-License-Identifier: Apache-2.0
// The commands and options of a program, as CLI11 has them: for completions and the manual.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "host/base/status.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

// {"name", "purpose", "footer", "options": [{"names", "help", "type", "default", "choices", "value",
// "positional", "required"}], "commands": [...]}. A positional option has no names. "value": it has one.
nlohmann::ordered_json TablesOf(const CLI::App& app);

// The help of a command without subcommands, or of each of its subcommands.
std::string HelpOf(const CLI::App& app);

// Words in place of a command: print TablesOf and HelpOf the program. For fusebox, which has no tables of
// the commands that are in fusebox-convert.
inline constexpr const char* kTablesWord = "__tables";
inline constexpr const char* kHelpWord = "__help";

}  // namespace fusebox::cli
