// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fusebox::converter {

// Whether an op of TensorFlow gives a lookup table's handle. Such a node carries what its table holds
// (attributes table_id, keys and values), or `why` that is not known.
bool IsLookupTable(std::string_view op);

}  // namespace fusebox::converter
