// SPDX-License-Identifier: Apache-2.0
// Configurations of Keras 1 in the words of Keras 2.
#pragma once

#include <nlohmann/json.hpp>

#include "host/base/status.h"

namespace fusebox::keras {

// Classes and settings that were renamed bear their new names, in nested models too. What Keras 2 has no word
// for (modes of a Merge that multiply vectors, other modes of BatchNormalization) is refused.
Status Modernize(nlohmann::json& model);

}  // namespace fusebox::keras
