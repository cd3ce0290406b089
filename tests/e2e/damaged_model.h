// SPDX-License-Identifier: Apache-2.0
// SavedModels that are damaged on purpose, and what the command says of them.
#pragma once

#include <functional>
#include <string>

#include "samples/models/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {

using Damage = std::function<void(tf::SavedModel&)>;

// Writes the model, changed by `damage`, and converts it with the command: a file is written where that
// succeeds, and only there.
CommandResult ConvertDamaged(samples::SavedModelBuilder& model, const Damage& damage);

// Status 2, and a sentence with the model's path, the place and the reason.
void ExpectRefused(const CommandResult& command, const std::string& place, const std::string& why);

// The first function whose name begins so, and a function's first node of that op. The test fails where there
// is none.
tf::FunctionDef& FunctionIn(tf::SavedModel& model, const std::string& name);
tf::NodeDef& NodeIn(tf::FunctionDef& f, const std::string& op);

}  // namespace fusebox::testing
