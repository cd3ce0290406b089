// SPDX-License-Identifier: Apache-2.0
// A tensor's elements as text, for all types.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::cli {

// The first `limit` elements, also strings: "[0.25, -1, ...]", a JSON array.
Result<std::string> FirstElements(const Tensor& tensor, size_t limit);
Result<nlohmann::ordered_json> FirstElementsJson(const Tensor& tensor, size_t limit);

}  // namespace fusebox::cli
