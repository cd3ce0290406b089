// SPDX-License-Identifier: Apache-2.0
// Colors: option --color, NO_COLOR, and what is colored: heads and verdicts of tables, and errors.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace fusebox::cli {

// Adds --color to the command and its subcommands.
void AddColorFlag(CLI::App& app);
// After the flags were parsed.
void StyleOutput();

// The start of a message on stderr.
std::string MessageHead(bool is_error);

}  // namespace fusebox::cli
