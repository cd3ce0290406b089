// SPDX-License-Identifier: Apache-2.0
// The subcommands, one file each: Add declares the flags and, when the subcommand was chosen, leaves in
// `action` what it does.
#pragma once

#include <functional>

#include "host/base/status.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

// Exit status of the process.
enum class Exit {
  kDone = 0,
  kNo = 1,        // a check failed: differs, not verified, not fully fused
  kBadInput = 2,  // and bad usage
  kInternal = 3,
};

// Prints results to stdout and messages to stderr. An error becomes kInternal when it is one, else kBadInput.
using Action = std::function<Result<Exit>()>;

void AddConvert(CLI::App& root, Action& action);
void AddRun(CLI::App& root, Action& action);
void AddCompare(CLI::App& root, Action& action);
void AddVerify(CLI::App& root, Action& action);
void AddInspect(CLI::App& root, Action& action);
void AddCache(CLI::App& root, Action& action);
void AddPlugin(CLI::App& root, Action& action);

// Options that all of them word alike.
inline constexpr const char* kJsonHelp = "Print JSON instead of text; its keys are stable";

}  // namespace fusebox::cli
