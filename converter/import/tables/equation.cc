// SPDX-License-Identifier: Apache-2.0
#include "converter/import/tables/equation.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace fusebox::converter {
namespace {

// Expands "..." of an operand to letters from `spare`, which the equation does not use. Ellipsis dimensions
// are counted from the right, so operands share the last ones.
Result<std::string> Spelled(const std::string& labels, int rank, const std::string& spare) {
  const size_t at = labels.find("...");
  if (at == std::string::npos) return labels;
  const int hidden = rank - static_cast<int>(labels.size() - 3);
  if (hidden < 0 || hidden > static_cast<int>(spare.size()))
    return Unsupported("\"" + labels + "\" in the equation for an operand of rank " + std::to_string(rank));
  return labels.substr(0, at) + spare.substr(spare.size() - static_cast<size_t>(hidden)) +
         labels.substr(at + 3);
}

// Returns the implied result: "..." if an operand has it, then the letters that occur once, in alphabetical
// order.
std::string Implied(const std::string& operands) {
  std::string letters;
  for (const char c : operands) {
    if (std::isalpha(static_cast<unsigned char>(c)) && std::ranges::count(operands, c) == 1) letters += c;
  }
  std::ranges::sort(letters);
  return (operands.contains('.') ? "..." : "") + letters;
}

std::string Letters(std::string_view equation) {
  std::string spare;
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    if (equation.find(c) == std::string_view::npos) spare += c;
  return spare;
}

// Replaces "..." with letters, given the operands' ranks.
Result<std::string> WithoutEllipsis(const std::string& plain, std::span<const int> ranks) {
  const size_t arrow = plain.find("->");
  const std::string operands = plain.substr(0, arrow);
  const std::string spare = Letters(plain);
  std::string result = arrow == std::string::npos ? Implied(operands) : plain.substr(arrow + 2);
  std::string out;
  std::string hidden;  // the longest of them
  size_t begin = 0;
  for (size_t i = 0; begin <= operands.size(); ++i) {
    const size_t end = std::min(operands.find(',', begin), operands.size());
    const std::string labels = operands.substr(begin, end - begin);
    if (i >= ranks.size()) return Invalid("its equation has more operands than it has");
    FUSEBOX_ASSIGN(const std::string spelled, Spelled(labels, ranks[i], spare));
    if (const size_t at = labels.find("..."); at != std::string::npos) {
      const std::string here = spelled.substr(at, spelled.size() + 3 - labels.size());
      if (here.size() > hidden.size()) hidden = here;
    }
    out += (i ? "," : "") + spelled;
    begin = end + 1;
  }
  if (const size_t at = result.find("..."); at != std::string::npos) result.replace(at, 3, hidden);
  else if (!hidden.empty()) return Unsupported("equation \"" + plain + "\" sums over its ellipsis");
  return out + "->" + result;
}

}  // namespace

Result<Equation> ParseEquation(const std::string& text, std::span<const int> ranks) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain += c;
  }
  const auto refuse = [&](const char* why) { return Unsupported("equation \"" + text + "\" " + why); };
  FUSEBOX_ASSIGN(plain, WithoutEllipsis(plain, ranks));
  const size_t arrow = plain.find("->");
  const std::string operands = plain.substr(0, arrow);
  const size_t comma = operands.find(',');
  Equation out{operands.substr(0, comma), "", plain.substr(arrow + 2), comma == std::string::npos};
  if (!out.one) out.right = operands.substr(comma + 1);
  if (out.right.contains(',')) return refuse("has more than two operands");
  for (const std::string* labels : {&out.left, &out.right, &out.result}) {
    std::string sorted = *labels;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
      return refuse("repeats a label within one operand");
    for (const char c : sorted) {
      if (!std::isalpha(static_cast<unsigned char>(c))) return refuse("has a label that is not a letter");
    }
  }
  for (const char c : out.result) {
    if (!out.left.contains(c) && !out.right.contains(c)) return refuse("has a label in the result only");
  }
  return out;
}

}  // namespace fusebox::converter
