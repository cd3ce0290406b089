// SPDX-License-Identifier: Apache-2.0
// Subcommands of `fusebox plugin` that have a separate file.
#pragma once

#include "cli/base/command.h"

namespace fusebox::cli {

void AddPluginIndex(CLI::App& plugin, Action& action);
void AddPluginNew(CLI::App& plugin, Action& action);

}  // namespace fusebox::cli
