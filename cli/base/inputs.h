// SPDX-License-Identifier: Apache-2.0
// Inputs of a run: from files, from a folder, or generated from a seed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "host/session.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

// An input or output, with its name in the signature and its tensor name.
struct Port {
  std::string name, tensor;
  Type type;
};
struct Ports {
  std::vector<Port> inputs, outputs;
};
// Finds a port by either name.
Result<size_t> FindPort(const std::vector<Port>& ports, const std::string& name);
// The ports of the function that a session of that signature runs.
Ports PortsOf(const Model& model, const Session& session, const std::string& signature);

// "x=1,28,28"; "x=" is a scalar.
Result<std::pair<std::string, Shape>> ParseShape(const std::string& text);

struct InputFlags {
  std::vector<std::string> shapes;  // NAME=DIM,DIM,...
  std::vector<std::string> files;   // NAME=FILE
  std::string dir;
  uint64_t seed = 1;
};
void AddInputFlags(CLI::App& app, InputFlags& flags);
void AddMemoryLimit(CLI::App& app, SessionOptions& options);

// One value per input. --input has priority. With --input-dir, the folder must hold the others as in<i>.npy
// or <name>.npy (strings: also .json, nested lists). Otherwise they are SeededValue(type, seed, i).
Result<std::vector<Tensor>> ReadValues(const InputFlags& flags, const std::vector<Port>& inputs);

}  // namespace fusebox::cli
