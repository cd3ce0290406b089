// SPDX-License-Identifier: Apache-2.0
// Conformance runner for plugins (`fusebox plugin check`).
//
//   find plugins -> static facts of the file -> models -> each test in a child process -> rows
//
// The calling process never runs code of the plugin. A child has limits on time and memory; a crash, an exit
// or an endless loop in it is a failed row. Call from a process with one thread: children are forked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/plugin/registry.h"

namespace fusebox::check {

struct Options {
  Config config = {};                    // where other plugins are found; options of plugins
  std::vector<std::string> models = {};  // beside those in the folders `models` and `tests` of the plugin
  std::vector<std::string> only = {};    // groups ("kernel") or tests ("kernel.threads"); empty: all
  uint64_t seed = 1;                     // of inputs, and of permutations
  double seconds = 20;                   // limit of one test, on the clock and of CPU time
};

struct Row {
  enum class State { kPassed, kFailed, kNotTested };
  std::string plugin;  // id
  std::string manifest;
  std::string test;     // "kernel.threads"
  std::string subject;  // model; empty: the plugin as a whole
  State state = State::kPassed;
  std::string why;  // failed, not tested: the reason; passed: a remark, or empty
  double seconds = 0;
};
std::string_view Name(Row::State);  // "passed", "failed", "not tested"

// All tests in the order in which they run: name and purpose.
struct TestName {
  std::string name, purpose;
};
std::vector<TestName> TestNames();
// Returns the faults that no test here can find, one sentence each.
std::vector<std::string> Untested();

// Returns the manifests at a path: of a manifest, a library, a plugin's folder, or a folder of these. Error:
// none.
Result<std::vector<std::string>> FindPlugins(const Config& config, const std::string& path);

// Runs the tests on one plugin. Error: an unknown name in Options::only, a model that cannot be read, or no
// child process could be started; never a fault of the plugin.
Result<std::vector<Row>> Check(const std::string& manifest, const Options& options);

}  // namespace fusebox::check
