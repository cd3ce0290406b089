// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fusebox::converter {

// True if a TensorFlow op returns a lookup table handle. Its node has the contents as attributes (table_id,
// keys and values), or the `reason` why they are unknown.
bool IsLookupTable(std::string_view op);

}  // namespace fusebox::converter
