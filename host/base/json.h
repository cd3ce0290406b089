// SPDX-License-Identifier: Apache-2.0
// JSON with positions: every complaint about a file that a person wrote is file:line:column. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox {

struct Position {
  int line = 1, column = 1;  // counted in bytes, from 1
  bool operator==(const Position&) const = default;
};

// Errors: "name:line:column: syntax error ...", a key that stands twice in one object, or nesting deeper than
// 100.
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view name);

// Where the value that a JSON pointer names ("/plugin/id") stands in the text: at its key, or at the value
// itself in an array. Where the pointer leads nowhere: the deepest part that there is. The text must have
// been parsed already.
Position PositionOf(std::string_view text, std::string_view json_pointer);

// "name:line:column", for Error::At.
std::string Place(std::string_view name, Position position);

// The candidate that a mistyped word is closest to; empty when none is near.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean \"X\"?", or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace fusebox
