// SPDX-License-Identifier: Apache-2.0
#include "host/base/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/base/status.h"
#include "host/base/table_style.h"

namespace fusebox {
namespace {

// Length of the UTF-8 sequence at the start of `text`; 0: invalid.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t length = 0;
  if (byte(0) < 0x80) length = 1;
  else if (byte(0) >= 0xC2 && byte(0) < 0xE0) length = 2;
  else if (byte(0) >= 0xE0 && byte(0) < 0xF0) length = 3;
  else if (byte(0) >= 0xF0 && byte(0) < 0xF5) length = 4;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // 0xC2 0x80..0x9F are the Latin-1 control characters, which terminals interpret too.
    const bool control = length == 1
                             ? first < 0x20 || first == 0x7F
                             : length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (length == 0 || control) out += fmt::format("\\x{:02x}", first);
    else out.append(text.substr(0, length));
    // The rest of a control character is not valid UTF-8 and is printed as bytes.
    text.remove_prefix(length == 0 || control ? 1 : length);
  }
  return out;
}

namespace {
CellStyle cell_style;
}

void StyleTables(CellStyle style) { cell_style = std::move(style); }

Table::Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }

void Table::Row(std::vector<std::string> cells) {
  FUSEBOX_CHECK(cells.size() == rows_[0].size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text(std::string_view indent) const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], Width(rows_[r][c]));
      if (r > 0 && !IsNumber(rows_[r][c])) right[c] = false;
    }
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line(indent), rule(indent);
    for (size_t c = 0; c < columns; ++c) {
      const std::string pad(widths[c] - Width(rows_[r][c]), ' ');
      if (c > 0) line += " | ";
      const std::string cell = cell_style ? cell_style(rows_[r][c], r == 0) : rows_[r][c];
      line += right[c] ? pad + cell : cell + pad;
      rule += (c > 0 ? "-+-" : "") + std::string(widths[c], '-');
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r == 0) out += rule + "\n";
  }
  return out;
}

}  // namespace fusebox
