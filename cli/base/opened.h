// SPDX-License-Identifier: Apache-2.0
// A model with a session, opened for a command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/base/inputs.h"
#include "host/model.h"
#include "host/session.h"

namespace fusebox::cli {

struct Opened {
  std::string path;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Session> session;
  Ports ports;
};

// Prints the model's notices to stderr. Errors name the file.
Result<Opened> Open(const std::string& path, const ModelOptions& model, const SessionOptions& options);

// Applies the dims of --shape to inputs and their ports.
Status ResizeInputs(Opened& opened, const std::vector<std::string>& shapes);
// The function of the model that the session runs.
const std::string& FunctionOf(const Opened& opened);
// Sets all inputs.
Status SetInputs(Session& session, const std::vector<Tensor>& values);
// Copies of all outputs.
Result<std::vector<Tensor>> CopyOutputs(const Session& session);

}  // namespace fusebox::cli
