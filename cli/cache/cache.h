// SPDX-License-Identifier: Apache-2.0
// Subcommands of `fusebox cache` that open a model.
#pragma once

#include "cli/base/command.h"

namespace fusebox::cli {

void AddCacheBuild(CLI::App& cache, Action& action);
void AddCacheDoctor(CLI::App& cache, Action& action);

}  // namespace fusebox::cli
