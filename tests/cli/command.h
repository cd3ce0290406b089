// SPDX-License-Identifier: Apache-2.0
// Runs the fusebox command as a process, with the built-in plugin and those named by --plugin.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::cli_test {

struct Finished {
  int status = -1;
  std::string out, err;
  nlohmann::json Json() const { return nlohmann::json::parse(out); }
};
// program: another copy of the command; empty: that of this build.
Finished Fusebox(const std::vector<std::string>& arguments, const std::string& program = {});

// The same with stdout and stderr on a terminal; both are in `out`, as the program wrote them. `environment`:
// NAME=VALUE, in addition.
Finished FuseboxOnTerminal(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment = {});

// A path in a folder of the running test; the folder is empty at first use.
std::string Path(const std::string& name);
// The folder of a plugin of this build ("fusebox.rnn").
std::string PluginFolder(const std::string& id);

// Writes y = x + addend to Path(name), x f32[2,3], signature "serving_default", and returns the path.
std::string WriteAddModel(const std::string& name, float addend);
// Writes a sample SavedModel to Path(name) and returns the path.
std::string WriteSample(const std::string& name);

std::vector<std::string> FilesBelow(const std::string& folder);

}  // namespace fusebox::cli_test
