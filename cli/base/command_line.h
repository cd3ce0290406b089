// SPDX-License-Identifier: Apache-2.0
// The command line of the programs fusebox and fusebox-convert.
#pragma once

#include <functional>

#include "cli/base/command.h"

namespace fusebox::cli {

// Lets the process end with status 2 if memory is missing where no exception can leave. For the start of
// main.
void EndIfMemoryIsMissing();

// Parses and runs one of the subcommands that `add` declares. Returns the exit code.
int RunCommandLine(int argc, char** argv, const std::function<void(CLI::App& root, Action& action)>& add);

}  // namespace fusebox::cli
