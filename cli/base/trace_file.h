// SPDX-License-Identifier: Apache-2.0
// Option --trace: a file in Chrome's trace event format (host/base/trace.h).
#pragma once

#include <string>

#include "cli/base/command.h"
#include "host/base/trace.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

void AddTraceFlag(CLI::App& app, std::string& path, const char* help);

// Runs `work` and writes what this thread did to `path`, also if `work` fails. Empty: no trace. A path that
// cannot be written is an error before the work.
Result<Exit> RunTraced(const std::string& path, const Action& work);

// Completes `file`; a message if the trace is not complete.
Status Commit(const Trace& trace, AtomicFile& file, const std::string& path);

}  // namespace fusebox::cli
