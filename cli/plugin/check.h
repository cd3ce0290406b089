// SPDX-License-Identifier: Apache-2.0
// `fusebox plugin check`.
#pragma once

#include "cli/base/command.h"

namespace fusebox::cli {

void AddPluginCheck(CLI::App& plugin, Action& action);

}  // namespace fusebox::cli
