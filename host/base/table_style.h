// SPDX-License-Identifier: Apache-2.0
// Styles of all tables of the process, for terminals. Set before the first table.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fusebox {

// Returns a cell with escape sequences around it, or unchanged. They do not count as width.
using CellStyle = std::function<std::string(std::string_view cell, bool is_head)>;
void StyleTables(CellStyle);  // empty: plain text

}  // namespace fusebox
