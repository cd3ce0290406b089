// SPDX-License-Identifier: Apache-2.0
#include "cli/base/trace_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/base/checks.h"
#include "cli/base/print.h"

namespace fusebox::cli {

void AddTraceFlag(CLI::App& app, std::string& path, const char* help) {
  app.add_option("--trace", path, help)->type_name("FILE.json")->check(CheckNotEmpty);
}

Result<Exit> RunTraced(const std::string& path, const Action& work) {
  if (path.empty()) return work();
  FUSEBOX_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  Trace trace;
  Result<Exit> done = [&] {
    const Trace::Recording recording(trace);
    return work();
  }();
  const Status written = Commit(trace, file, path);
  if (done && !written) return std::unexpected(written.error());
  return done;
}

Status Commit(const Trace& trace, AtomicFile& file, const std::string& path) {
  FUSEBOX_TRY(trace.Write(file));
  FUSEBOX_TRY(file.Commit());
  if (trace.dropped() > 0)
    Message(fmt::format("{}: has the first {} spans, {} later ones are left out", path, Trace::kMostSpans,
                        trace.dropped()));
  return {};
}

}  // namespace fusebox::cli
