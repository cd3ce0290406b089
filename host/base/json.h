// SPDX-License-Identifier: Apache-2.0
// JSON parser with positions: errors in user files name file:line:column. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox {

struct Position {
  // Counted in bytes, from 1.
  int line = 1;
  int column = 1;
  bool operator==(const Position&) const = default;
};

// Errors: "name:line:column: syntax error ...", a duplicate key, nesting deeper than 100.
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view name);

// The position of the value that a JSON pointer ("/plugin/id") refers to: of its key, or in an array of the
// value. If the pointer does not resolve: of the deepest existing part. The text must be valid JSON.
Position PositionOf(std::string_view text, std::string_view json_pointer);

// "name:line:column", for Error::At.
std::string Place(std::string_view name, Position position);

// The candidate closest to a mistyped word; empty if none is close.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean \"X\"?", or empty.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace fusebox
