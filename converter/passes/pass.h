// SPDX-License-Identifier: Apache-2.0
// Passes: one walk over the graph and one file each, listed in order in passes.def.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "converter/convert.h"

namespace fusebox::converter {

struct Context {
  Module& module;
  Registry& registry;
  const Options& options;
  Report& report;
  const Services* services = nullptr;  // for constant folding; null: no threads
  bool f16_weights = false;            // the source stores weights as f16
  // By signature and name: inputs whose only unknown dimension was set by --batch and may be a length.
  std::set<std::pair<std::string, std::string>> lengths = {};

  // Progress of all passes; long passes announce more steps.
  Progress progress = {.what = {}, .unit = Progress::Unit::kSteps};

  // More steps are to come.
  void Announce(size_t steps) { progress.total += steps; }
  // A step begins. Its end is not reported.
  void Step(std::string what) {
    progress.what = std::move(what);
    progress.total = std::max(progress.total, progress.done + 1);
    if (options.progress) options.progress(progress);
    ++progress.done;
  }
  void Note(std::string text) { report.notes.push_back(std::move(text)); }
};

#define FUSEBOX_PASS(name, function, run_by, what) Status function(Context&);
#include "converter/passes/passes.def"
#undef FUSEBOX_PASS

struct Pass {
  enum RunBy { kConversion, kAlsoVerification };
  std::string_view name, what;
  Status (*run)(Context&);
  RunBy run_by;
};
const std::vector<Pass>& Passes();

// Runs all passes; verifies the graph after each and names the pass in errors.
Status RunPasses(Context&);
// Runs the passes that make a body runnable.
Status RunVerificationPasses(Context&);

// Runs `step` for each signature. A failing signature is dropped and reported if others remain and none was
// requested by name; otherwise its error is returned.
Status ForEachSignature(Context&, const std::function<Status(const Signature&)>& step);

// Copies `body` of `module` and makes the copy runnable with the verification passes. Returns the module
// whose first function is the copy.
Result<std::unique_ptr<Module>> RunnableCopy(const Module& module, const Function& body,
                                             const std::vector<Type>& inputs, Registry&);

}  // namespace fusebox::converter
