// SPDX-License-Identifier: Apache-2.0
#include "host/base/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/base/status.h"
#include "host/base/table_style.h"

namespace fusebox {
namespace {

// Returns the length of the UTF-8 sequence at the start of `text`, or 0 if it is invalid.
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

// Each line of `text` with `indent` before it.
std::string Indented(std::string_view text, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n') + 1;
    out.append(indent).append(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

constexpr size_t kNarrowest = 12;  // of a column that is wrapped

CellStyle cell_style;
size_t most_width = 0;

// The first `width` characters, or the part up to a space that ends a word there.
std::string_view FirstLine(std::string_view text, size_t width) {
  size_t end = 0;
  for (size_t count = 0; count < width && end < text.size(); ++count) end += SequenceLength(text.substr(end));
  if (end == text.size()) return text;
  const size_t space = text.substr(0, end + 1).rfind(' ');
  return text.substr(0, space == std::string_view::npos || space < end / 2 ? end : space);
}

std::vector<std::string_view> Wrapped(std::string_view text, size_t width) {
  std::vector<std::string_view> lines;
  do {
    lines.push_back(FirstLine(text, width));
    text.remove_prefix(lines.back().size());
    if (text.starts_with(' ')) text.remove_prefix(1);
  } while (!text.empty());
  return lines;
}

// Takes from the widest columns of text what is over the limit.
void Shrink(std::vector<size_t>& widths, const std::vector<bool>& numbers, size_t indent) {
  size_t total = indent + 3 * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  for (; total > most_width; --total) {
    size_t widest = 0;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (!numbers[c] && (numbers[widest] || widths[c] > widths[widest])) widest = c;
    }
    if (numbers[widest] || widths[widest] <= kNarrowest) return;
    --widths[widest];
  }
}

}  // namespace

void StyleTables(CellStyle style) { cell_style = std::move(style); }
void LimitTables(size_t width) { most_width = width; }

Table::Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }

void Table::Row(std::vector<std::string> cells) {
  FUSEBOX_CHECK(cells.size() == rows_[0].size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::RowText(size_t row, const std::vector<size_t>& widths,
                           const std::vector<bool>& right) const {
  std::vector<std::vector<std::string_view>> cells;
  size_t lines = 1;
  for (size_t c = 0; c < widths.size(); ++c) {
    cells.push_back(Wrapped(rows_[row][c], std::max(widths[c], size_t{1})));
    lines = std::max(lines, cells.back().size());
  }
  std::string out;
  for (size_t l = 0; l < lines; ++l) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string_view text = l < cells[c].size() ? cells[c][l] : "";
      const std::string pad(widths[c] - Width(text), ' ');
      const std::string cell = cell_style && l == 0 ? cell_style(text, row == 0) : std::string(text);
      if (c > 0) line += " | ";
      line += right[c] ? pad + cell : cell + pad;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
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
  if (most_width > 0) Shrink(widths, right, indent.size());
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    text += RowText(r, widths, right);
    if (r > 0) continue;
    for (size_t c = 0; c < columns; ++c) text += (c > 0 ? "-+-" : "") + std::string(widths[c], '-');
    text += '\n';
  }
  return indent.empty() ? text : Indented(text, indent);
}

}  // namespace fusebox
