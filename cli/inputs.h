// SPDX-License-Identifier: Apache-2.0
// The inputs of a run: from files, from a folder, or made up from a seed.
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

// An input or output, by the name of the signature and by the name of the tensor that stands for it.
struct Port {
  std::string name, tensor;
  Type type;
};
struct Ports {
  std::vector<Port> inputs, outputs;
};
// By either name.
Result<size_t> FindPort(const std::vector<Port>& ports, const std::string& name);
// Those of the function that a session of that signature runs.
Ports PortsOf(const Model& model, const Session& session, const std::string& signature);

// "x=1,28,28"; "x=" is a scalar's.
Result<std::pair<std::string, Shape>> ParseShape(const std::string& text);

struct InputFlags {
  std::vector<std::string> shapes;  // NAME=DIM,DIM,...
  std::vector<std::string> files;   // NAME=FILE
  std::string dir;
  uint64_t seed = 1;
};
void AddInputFlags(CLI::App& app, InputFlags& flags);

// One value per input. --input comes first; then, where --input-dir is given, in<i>.npy or <name>.npy of that
// folder (strings: also .json, nested lists), which must hold the rest; without it the rest is
// SeededTensor(type, seed, i).
Result<std::vector<Tensor>> ReadInputs(const InputFlags& flags, const std::vector<Port>& inputs);

}  // namespace fusebox::cli
