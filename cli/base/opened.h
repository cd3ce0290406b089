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

// Gives the inputs the dims of --shape, of their files or of generated values, so that Session::Prepare finds
// out whether the memory suffices before any is filled. Returns ReadValues.
Result<std::vector<Tensor>> ReadInputs(const InputFlags& flags, Opened& opened);
// Sets all inputs. Values without data are generated in the memory of the session, and view it.
Status SetInputs(Session& session, std::vector<Tensor>& values, uint64_t seed);
// The function of the model that the session runs.
const std::string& FunctionOf(const Opened& opened);
// Gives an input the dims of its value. Strings have dims with a value only, so they are set.
Status ShapeInput(Session& session, size_t index, const Tensor& value);
// Views of all outputs, valid until the next run.
Result<std::vector<Tensor>> Outputs(const Session& session);

}  // namespace fusebox::cli
