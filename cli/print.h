// SPDX-License-Identifier: Apache-2.0
// What goes to stdout (results) and stderr (messages).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::cli {

// Text as it is.
void Print(std::string_view text);
// JSON on its own, indented. Bytes of a model's names that are not UTF-8 become replacement characters.
void PrintDocument(const nlohmann::ordered_json& json);
// "fusebox: text" on stderr; control characters out of a file's names do not reach the terminal.
void Message(std::string_view text);
// For tables: what was fused bears the names of all that it was made of, of which the first says enough.
// "a;b;c" is "a;...".
std::string FirstOfNames(const std::string& node);
// Results that could not be written out (a full disk, a closed pipe) are an error.
Status Flush();

}  // namespace fusebox::cli
