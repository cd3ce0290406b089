// SPDX-License-Identifier: Apache-2.0
// Validators of option values.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::cli {

// Return the error, or "" if valid; for CLI::Option::check.
std::string CheckNotEmpty(const std::string&);
std::string CheckWholeNumber(const std::string&);  // 0 to 2^64 - 1
std::string CheckTolerance(const std::string&);    // a finite number, at least 0
std::string CheckSomeBytes(const std::string&);    // before CLI::AsSizeValue, which reads -1 as 2^64 - 1

// Rejects an output path that would overwrite what is read. All files in an input folder count as input.
Status RequireNotRead(const std::string& option, const std::string& output, const std::string& input);
// Rejects output paths that would overwrite the input or each other. Empty: not given.
Status RequireApart(const std::string& input, const std::string& output, const std::string& report);
// The same for the file of --trace.
Status RequireTraceApart(const std::string& trace, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs);

}  // namespace fusebox::cli
