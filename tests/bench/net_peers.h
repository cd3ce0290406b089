// SPDX-License-Identifier: Apache-2.0
// The engines that net_bench compares with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/net_bench.h"

namespace fusebox::bench {

class Peer {
 public:
  virtual ~Peer() = default;
  // Copies the inputs of the session.
  virtual Status Feed(Session&) = 0;
  virtual Status Run() = 0;
  // Compares the outputs of both after a run. Error: they differ. By default, nothing is compared.
  virtual Status Compare(const Session&) { return {}; }
};

struct PeerKind {
  std::string name;  // in rows and margins.tsv
  std::function<Result<std::unique_ptr<Peer>>(const std::string& path, int threads)> open;
};

// With --kernels, TFLite without a delegate. Else TFLite with its XNNPACK delegate, LiteRT with its own if
// FUSEBOX_LITERT names its C library (libtensorflowlite_c.so), and ONNX Runtime.
std::vector<PeerKind> PeersOf(const NetArguments&);

// ONNX Runtime (libonnxruntime.so of FUSEBOX_PEER_DIR) with the file as an ONNX model. Error: it has no
// translation, or ONNX Runtime rejects it. `optimized`: a file for the model after its optimizations.
Result<std::unique_ptr<Peer>> OpenOnnxPeer(const std::string& path, int threads,
                                           const std::string& optimized = {});

}  // namespace fusebox::bench
