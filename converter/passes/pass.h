// SPDX-License-Identifier: Apache-2.0
// Passes: one walk over the graph each, one file each, listed in order in passes.def.
#pragma once

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
  const Services* services = nullptr;  // of the kernels that fold; null: no threads
  bool halves = false;                 // the source stores weights as f16
  // By signature and name: inputs whose one open dimension --batch has fixed, which may be a length.
  std::set<std::pair<std::string, std::string>> lengths = {};

  void Note(std::string text) { report.notes.push_back(std::move(text)); }
};

#define FUSEBOX_PASS(name, function, run_by, what) Status function(Context&);
#include "converter/passes/passes.def"
#undef FUSEBOX_PASS

struct Pass {
  enum RunBy { kConversion, kAlsoProofs };
  std::string_view name, what;
  Status (*run)(Context&);
  RunBy run_by;
};
const std::vector<Pass>& Passes();

// Runs all passes; verifies the graph after each and names the pass in errors.
Status RunPasses(Context&);
// Runs those that make a body runnable.
Status RunProofPasses(Context&);

// Does `step` for each signature. One that fails is dropped and named in the report, as long as another is
// left and none was asked for by name; else its failure is the result.
Status ForEachSignature(Context&, const std::function<Status(const Signature&)>& step);

// Makes `body` of `module` runnable by the host in a copy, by the passes that proofs run. Returns the module
// that holds the copy as its first function.
Result<std::unique_ptr<Module>> RunnableCopy(const Module& module, const Function& body,
                                             const std::vector<Type>& inputs, Registry&);

}  // namespace fusebox::converter
