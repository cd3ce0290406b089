// SPDX-License-Identifier: Apache-2.0
// The parts of net_bench.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/session.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {

struct NetArguments {
  std::vector<std::string> plugins, files;
  double seconds = 1;    // measuring time per net and thread count
  bool alone = false;    // files: without peers
  bool kernels = false;  // files: neither with a delegate
  int threads = 0;       // files: this number only; 0: 1, then 2
};

Result<std::shared_ptr<const Model>> OpenModel(const std::string& path, const NetArguments&,
                                               const std::string& options = {});
Result<std::unique_ptr<Session>> OpenNet(const std::string& path, const NetArguments&, int threads,
                                         const std::string& options = {});
// Noise from a fixed seed for the nets' input types; unknown dims are 1.
Status FillInputs(Session& session);
// Gives stock the inputs of the session.
Status Feed(testing::Stock& stock, Session& session);
// ", 1 thread": suffix of a job's name.
std::string OnThreads(int threads);

// Compares MobileNetV2 with the same net on XNNPACK. Writes rows; false: not measured.
bool CompareMobileNet(const NetArguments&);
// Compares files with the peers (net_peers.h). Writes rows; false: a file does not run here.
bool CompareFiles(const NetArguments&);

}  // namespace fusebox::bench
