// SPDX-License-Identifier: Apache-2.0
#include "cli/base/color.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "host/base/table_style.h"

namespace fusebox::cli {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kBoldRed = "\x1b[1;31m";
constexpr std::string_view kEnd = "\x1b[0m";
constexpr std::array<std::string_view, 5> kGood = {"fused", "agrees", "equal", "ok", "passed"};
constexpr std::array<std::string_view, 6> kBad = {"differs", "broken", "error", "failed", "bad", "missing"};

std::string& Choice() {
  static auto& choice = *new std::string("auto");
  return choice;
}

bool IsSet(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool IsOn(int descriptor) {
  if (Choice() != "auto") return Choice() == "always";
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return isatty(descriptor) != 0 && !dumb && !IsSet("NO_COLOR");
}

std::string Styled(std::string_view begin, std::string_view text) {
  return std::string(begin).append(text).append(kEnd);
}

// A verdict is the whole cell, or stands before a colon.
std::string StyledCell(std::string_view cell, bool is_head) {
  if (cell.empty()) return {};
  if (is_head) return Styled(kBold, cell);
  const std::string_view verdict = cell.substr(0, cell.find(':'));
  if (std::ranges::find(kGood, verdict) != kGood.end() || verdict.starts_with("fused -> "))
    return Styled(kGreen, cell);
  if (std::ranges::find(kBad, verdict) != kBad.end() || verdict.starts_with("differs "))
    return Styled(kRed, cell);
  return std::string(cell);
}

}  // namespace

void AddColorFlag(CLI::App& app) {
  if (app.get_subcommands({}).empty())
    app.add_option("--color", Choice(),
                   "Color the output: on a terminal unless NO_COLOR is set, always, or never")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN")
        ->capture_default_str();
  for (CLI::App* sub : app.get_subcommands({})) AddColorFlag(*sub);
}

void StyleOutput() {
  if (IsOn(STDOUT_FILENO)) StyleTables(StyledCell);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) LimitTables(size.ws_col);
}

std::string MessageHead(bool is_error) {
  const std::string head = "fusebox: ";
  return IsOn(STDERR_FILENO) ? Styled(is_error ? kBoldRed : kBold, head) : head;
}

}  // namespace fusebox::cli
