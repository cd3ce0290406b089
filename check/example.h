// SPDX-License-Identifier: Apache-2.0
// Attributes that a JSON Schema of the manifest most likely accepts.
#pragma once

#include <string>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::check {

// `schema`: an options_schema; or, with `is_when`, the conditions of a rule by attribute. Empty: no
// attributes.
Result<Attrs> ExampleAttributes(const std::string& schema, bool is_when);

}  // namespace fusebox::check
