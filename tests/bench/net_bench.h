// SPDX-License-Identifier: Apache-2.0
// The parts of net_bench.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/session.h"

namespace fusebox::bench {

struct NetArguments {
  std::vector<std::string> plugins, files;
  double seconds = 1;  // of measuring, by net and number of threads
};

Result<std::unique_ptr<Session>> OpenNet(const std::string& path, const NetArguments&, int threads,
                                         const std::string& options = {});
// Noise of the element types that nets take, from a fixed seed; unknown dims are 1.
Status FillInputs(Session& session);
// ", 1 thread": the end of a job's name.
std::string OnThreads(int threads);

// MobileNetV2 beside the same net on XNNPACK itself. Writes rows; false: not measured.
bool CompareMobileNet(const NetArguments&);
// Files beside TFLite with its XNNPACK delegate. Writes rows; false: some file does not run here.
bool CompareFiles(const NetArguments&);

}  // namespace fusebox::bench
