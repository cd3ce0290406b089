// SPDX-License-Identifier: Apache-2.0
// Table: plain text with aligned columns, for terminal output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

class Table {
 public:
  explicit Table(std::vector<std::string> head);
  // As many cells as the header has.
  void Row(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Every line starts with `indent` and ends in a line break. Columns of numbers (header excluded) are right
  // aligned.
  std::string Text(std::string_view indent = "") const;

 private:
  // A row as one or more lines.
  std::string RowText(size_t row, const std::vector<size_t>& widths, const std::vector<bool>& right) const;

  std::vector<std::vector<std::string>> rows_;  // header first
};

// Text from a file for one line of terminal output: control characters and invalid UTF-8 become \xNN.
std::string Printable(std::string_view text);

}  // namespace fusebox
