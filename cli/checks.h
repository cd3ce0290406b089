// SPDX-License-Identifier: Apache-2.0
// What the values of options are held against while the command line is read.
#pragma once

#include <string>

#include "host/base/status.h"

namespace fusebox::cli {

// Each says what is wrong with the text, "" nothing; for CLI::Option::check.
std::string CheckNotEmpty(const std::string&);
std::string CheckWholeNumber(const std::string&);  // 0 to 2^64 - 1
std::string CheckTolerance(const std::string&);    // a finite number, at least 0

// Refuses to write over what is read, and two things over each other. Empty: not given. What is in an input
// folder is read.
Status RequireApart(const std::string& input, const std::string& output, const std::string& report);

}  // namespace fusebox::cli
