// SPDX-License-Identifier: Apache-2.0
#include "cli/base/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/base/color.h"
#include "host/base/table.h"

namespace fusebox::cli {

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintDocument(const nlohmann::ordered_json& json) {
  Print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

namespace {

void WriteMessage(std::string out, std::string_view text) {
  while (true) {
    const size_t end = text.find('\n');
    out += Printable(text.substr(0, end)) + "\n";
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  std::fputs(out.c_str(), stderr);
}

}  // namespace

void Message(std::string_view text) { WriteMessage(MessageHead(false), text); }
void PrintNotices(std::string_view place, std::span<const std::string> notices) {
  for (size_t i = 0; i < notices.size(); ++i) {
    if (std::ranges::count(notices.first(i), notices[i]) > 0) continue;
    const auto times = std::ranges::count(notices, notices[i]);
    Message(fmt::format("{}: {}{}", place, notices[i], times > 1 ? fmt::format(" ({} times)", times) : ""));
  }
}
void ErrorMessage(std::string_view text) { WriteMessage(MessageHead(true), text); }

std::string FirstOfNames(const std::string& node) {
  const size_t end = node.find(';');
  if (end == std::string::npos) return node;
  return node.substr(0, end) + (node.ends_with(')') ? ";...)" : ";...");
}

Status Flush() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return IoError(std::string("stdout: ") + std::strerror(errno));
}

}  // namespace fusebox::cli
