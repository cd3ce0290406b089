// SPDX-License-Identifier: Apache-2.0
// fusebox plugin seal, fusebox plugin pin.
#pragma once

#include "cli/base/command.h"

namespace fusebox::cli {

void AddPluginSeal(CLI::App& plugin, Action& action);
void AddPluginPin(CLI::App& plugin, Action& action);

}  // namespace fusebox::cli
