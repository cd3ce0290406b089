// SPDX-License-Identifier: Apache-2.0
// The measurements of `fusebox bench`.
//
// One contestant runs in this process. Several run in processes that follow each other, and take turns in
// each of them: medians of one file differ between processes by more than its rounds in one process show.
#pragma once

#include <string>
#include <vector>

#include "cli/base/opened.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/trace_file.h"
#include "cli/bench/profile.h"
#include "cli/bench/report.h"

namespace fusebox::cli {

struct BenchFlags {
  std::vector<std::string> models, versus;
  SessionOptions session;
  InputFlags inputs;
  PluginFlags plugins;
  DelegateFlags delegates;
  Limits runs;
  Limits warmup{.runs = 1, .min_seconds = 0.5};
  std::vector<size_t> cpus;
  int cold = 0;
  std::string trace;
  bool json = false;
  bool csv = false;
  bool profile = false;
};

struct Entry {
  std::string model;
  DelegateFlags delegates;
};

// One per model, and one per --vs: another model, or the first one with another delegate.
std::vector<Entry> Entries(const BenchFlags&);

struct Measured {
  std::vector<Contestant> contestants;
  std::vector<ModelProfile> profiles;  // by contestant; empty: not wanted
  Memory memory;
};

// While this process has one thread.
Result<Measured> Measure(const BenchFlags&);
// Opens and runs each model once more.
Status TraceModels(const BenchFlags&, Trace&);

}  // namespace fusebox::cli
