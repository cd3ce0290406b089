// SPDX-License-Identifier: Apache-2.0
// Changes one key of a JSON file and leaves all other text as it is.
#pragma once

#include <string>
#include <string_view>

namespace fusebox::cli {

// Sets a key of the outermost object, whose old value, if any, is an object or an array. `text` must be a
// valid JSON object; `value` is JSON.
std::string WithKey(std::string text, std::string_view key, std::string_view value);

}  // namespace fusebox::cli
