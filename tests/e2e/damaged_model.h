// SPDX-License-Identifier: Apache-2.0
// Deliberately damaged SavedModels, and the command's errors.
#pragma once

#include <functional>
#include <string>

#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {

using Damage = std::function<void(tf::SavedModel&)>;

// Writes the model modified by `damage` and converts it with the command; checks that an output file exists
// only after success.
CommandResult ConvertDamaged(models::SavedModelBuilder& model, const Damage& damage);

// Exit code 2, and an error with the model's path, the place and the reason.
void ExpectRefused(const CommandResult& command, const std::string& place, const std::string& why);

// The first function with this name prefix, and a function's first node of that op. The test fails if there
// is none.
tf::FunctionDef& FunctionIn(tf::SavedModel& model, const std::string& name);
tf::NodeDef& NodeIn(tf::FunctionDef& f, const std::string& op);

}  // namespace fusebox::testing
