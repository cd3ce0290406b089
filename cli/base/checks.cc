// SPDX-License-Identifier: Apache-2.0
#include "cli/base/checks.h"

#include <charconv>
#include <cmath>
#include <filesystem>

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

template <class T>
bool Parses(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Follows links; the files need not exist.
bool Same(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) return fs::equivalent(a, b, error);
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

bool IsIn(const std::string& file, const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error) || !fs::is_regular_file(file, error)) return false;
  const fs::path inner =
      fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(folder, error));
  return !inner.empty() && *inner.begin() != "..";
}

}  // namespace

std::string CheckNotEmpty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

std::string CheckWholeNumber(const std::string& text) {
  uint64_t value = 0;
  return Parses(text, value) ? "" : "\"" + text + "\" is not a whole number from 0 to 18446744073709551615";
}

std::string CheckTolerance(const std::string& text) {
  double value = 0;
  return Parses(text, value) && std::isfinite(value) && value >= 0
             ? ""
             : "\"" + text + "\" is not a finite number that is at least 0";
}

std::string CheckSomeBytes(const std::string& text) {
  const bool positive =
      text.find_first_not_of("0123456789") != 0 && text.find_first_of("123456789") != text.npos;
  return positive ? "" : "\"" + text + "\" is not a number of bytes above 0, such as 500M";
}

Status RequireNotRead(const std::string& option, const std::string& written, const std::string& input) {
  if (written.empty() || (!Same(written, input) && !IsIn(written, input))) return {};
  return Invalid(option + " " + written + ": would replace " +
                 (Same(written, input) ? "the input" : "a file of the input " + input) + "; write elsewhere");
}

Status RequireApart(const std::string& input, const std::string& output, const std::string& report) {
  FUSEBOX_TRY(RequireNotRead("--output", output, input));
  FUSEBOX_TRY(RequireNotRead("--report", report, input));
  std::error_code error;
  // /dev/null accepts both
  const bool device = fs::exists(output, error) && !fs::is_regular_file(output, error);
  if (!report.empty() && !device && Same(output, report))
    return Invalid("--report " + report + ": is the same file as the output; write elsewhere");
  return {};
}

Status RequireTraceApart(const std::string& trace, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
  for (const std::string& input : inputs) FUSEBOX_TRY(RequireNotRead("--trace", trace, input));
  for (const std::string& output : outputs)
    if (!trace.empty() && !output.empty() && Same(trace, output))
      return Invalid("--trace " + trace + ": is the same file as another output; write elsewhere");
  return {};
}

}  // namespace fusebox::cli
