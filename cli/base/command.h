// SPDX-License-Identifier: Apache-2.0
// The subcommands, a file or folder each. Add declares the flags; if the subcommand is selected, it stores
// its action.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "host/base/status.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

// Exit code of the process.
enum class Exit {
  kDone = 0,
  kNo = 1,        // a check failed: differs, not verified, not fully fused
  kBadInput = 2,  // also usage errors
  kInternal = 3,
};

// Prints results to stdout and messages to stderr. An error becomes kInternal or kBadInput.
using Action = std::function<Result<Exit>()>;

void AddConvert(CLI::App& root, Action& action);  // libexec/convert.cc, in a separate program
void AddModel(CLI::App& root, Action& action);    // libexec/model.cc, in the same program
void AddRun(CLI::App& root, Action& action);
void AddBench(CLI::App& root, Action& action);
void AddCompare(CLI::App& root, Action& action);
void AddVerify(CLI::App& root, Action& action);
void AddReduce(CLI::App& root, Action& action);
void AddInspect(CLI::App& root, Action& action);
void AddCache(CLI::App& root, Action& action);
void AddPlugin(CLI::App& root, Action& action);
void AddCompletion(CLI::App& root, Action& action);
void AddManual(CLI::App& root, Action& action);  // shells/completion.cc
void AddHelpAll(CLI::App& root);                 // completion.cc

// The commands of the program fusebox-convert.
inline constexpr std::array<std::string_view, 2> kOfConvert = {"convert", "model"};

// Help texts shared by subcommands.
inline constexpr const char* kConvertPurpose =
    "Convert a model to .tflite and fuse the composites that plugins have rules for";
inline constexpr const char* kModelPurpose = "Write test models without TensorFlow";
inline constexpr const char* kJsonHelp = "Print JSON instead of text; its keys are stable";

}  // namespace fusebox::cli
