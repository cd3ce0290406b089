// SPDX-License-Identifier: Apache-2.0
// Paths of other implementations and real models, and the handling of missing ones.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace fusebox::testing {

// The path of a file below FUSEBOX_PEER_DIR or FUSEBOX_MODELS; empty: missing, with the reason in *why.
std::string PeerFile(const std::string& name, std::string* why);
std::string ModelFile(const std::string& name, std::string* why);
// FUSEBOX_PEERS=required: a missing peer is a failure.
bool PeersRequired();

}  // namespace fusebox::testing

// Skips the test if the peer is missing; fails if peers are required.
#define FUSEBOX_NEEDS_PEER(name)                                                                    \
  do {                                                                                              \
    std::string fusebox_why;                                                                        \
    if (!fusebox::testing::PeerFile(name, &fusebox_why).empty()) break;                             \
    if (fusebox::testing::PeersRequired()) FAIL() << fusebox_why << ", but FUSEBOX_PEERS=required"; \
    GTEST_SKIP() << fusebox_why;                                                                    \
  } while (0)
#define FUSEBOX_NEEDS_STOCK() FUSEBOX_NEEDS_PEER("libtensorflowlite_c.so")
#define FUSEBOX_NEEDS_TFJS() FUSEBOX_NEEDS_PEER("node_modules/@tensorflow/tfjs")

// Declares `path`, a file or folder of the real models, or skips the test.
#define FUSEBOX_NEEDS_MODEL(path, name)                                            \
  std::string fusebox_why_##path;                                                  \
  const std::string path = fusebox::testing::ModelFile(name, &fusebox_why_##path); \
  if (path.empty()) GTEST_SKIP() << fusebox_why_##path
