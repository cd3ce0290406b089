// SPDX-License-Identifier: Apache-2.0
// Measurements in child processes.
#pragma once

#include <functional>
#include <string>

#include "host/base/status.h"

namespace fusebox::cli {

// The text or error that `work` returns in a child process. `quiet` drops the messages of the child. While
// this process has one thread.
Result<std::string> InChild(bool quiet, const std::function<Result<std::string>()>& work);

}  // namespace fusebox::cli
