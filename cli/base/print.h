// SPDX-License-Identifier: Apache-2.0
// Output to stdout (results) and stderr (messages).
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::cli {

// Prints text unchanged.
void Print(std::string_view text);
// Prints JSON, indented. Invalid UTF-8 in names becomes replacement characters.
void PrintDocument(const nlohmann::ordered_json& json);
// Prints "fusebox: text" to stderr, with control characters escaped.
void Message(std::string_view text);
// Prints each different notice once, "fusebox: place: notice", with the number of times that it occurs.
void PrintNotices(std::string_view place, std::span<const std::string> notices);
void ErrorMessage(std::string_view text);  // the reason why the command fails
// Shortens the location of a fused op for tables: "a;b;c", the names of its source ops, becomes "a;...".
std::string FirstOfNames(const std::string& node);
// Error: results could not be written (disk full, closed pipe).
Status Flush();

}  // namespace fusebox::cli
