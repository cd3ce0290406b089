// SPDX-License-Identifier: Apache-2.0
// Style and width of all tables of the process, for terminals. Set before the first table.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fusebox {

// Returns a cell with escape sequences around it, or unchanged. They do not count as width.
using CellStyle = std::function<std::string(std::string_view cell, bool is_head)>;
void StyleTables(CellStyle);  // empty: plain text
// Wraps cells of text so that lines have at most `width` characters, if the columns allow it. 0: no limit.
void LimitTables(size_t width);

}  // namespace fusebox
