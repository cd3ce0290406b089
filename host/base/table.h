// SPDX-License-Identifier: Apache-2.0
// Text tables for people: "site | rule | result" over aligned rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

class Table {
 public:
  explicit Table(std::vector<std::string> head);
  // As many cells as the head has.
  void Row(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Every line ends in a line break and starts with `indent`. Numbers (all cells of a column but the head)
  // stand right.
  std::string Text(std::string_view indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the head first
};

// Text from a file on one line of a terminal: control characters, and bytes that are not UTF-8, as \xNN.
std::string Printable(std::string_view text);

}  // namespace fusebox
