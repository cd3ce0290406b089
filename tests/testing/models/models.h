// SPDX-License-Identifier: Apache-2.0
// All SavedModels that tests write by name: the samples, and models that no sample needs.
#pragma once

#include <span>
#include <string_view>

#include "samples/models/models.h"

namespace fusebox::test_models {

std::span<const samples::SampleModel> NamedModels();
const samples::SampleModel* FindModel(std::string_view name);

}  // namespace fusebox::test_models
