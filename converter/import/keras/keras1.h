// SPDX-License-Identifier: Apache-2.0
// Converts Keras 1 configurations to Keras 2.
#pragma once

#include <nlohmann/json.hpp>

#include "host/base/status.h"

namespace fusebox::keras {

// Renames classes and settings, also in nested models. Features without a Keras 2 equivalent (Merge modes
// that multiply vectors, other BatchNormalization modes) are rejected.
Status Modernize(nlohmann::json& model);

}  // namespace fusebox::keras
