// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin/json_edit.h"

#include <nlohmann/json.hpp>

#include "host/base/json.h"

namespace fusebox::cli {
namespace {

size_t OffsetOf(std::string_view text, Position position) {
  size_t at = 0;
  for (int line = 1; line < position.line; ++line) at = text.find('\n', at) + 1;
  return at + static_cast<size_t>(position.column - 1);
}

// The end of the object or array that begins at `at`.
size_t EndOf(std::string_view text, size_t at) {
  int depth = 0;
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    else if (c == '"') quoted = !quoted;
    else if (quoted) continue;
    else if (c == '{' || c == '[') ++depth;
    else if ((c == '}' || c == ']') && --depth == 0) return at + 1;
  }
  return at;
}

}  // namespace

std::string WithKey(std::string text, std::string_view key, std::string_view value) {
  const auto object = nlohmann::json::parse(text);
  if (object.contains(key)) {
    const size_t begin = text.find_first_of("{[", OffsetOf(text, PositionOf(text, "/" + std::string(key))));
    return text.replace(begin, EndOf(text, begin) - begin, value);
  }
  const size_t last = text.find_last_not_of(" \t\r\n", text.rfind('}') - 1);
  std::string added = object.empty() ? "" : ",";
  added.append("\n \"").append(key).append("\": ").append(value);
  return text.insert(last + 1, added);
}

}  // namespace fusebox::cli
