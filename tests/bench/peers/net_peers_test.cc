// SPDX-License-Identifier: Apache-2.0
// The peers of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "host/tflite/tflite.h"
#include "tests/bench/net_peers.h"
#include "tests/bench/written_nets.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"

namespace fusebox::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const std::vector<PeerKind>& peers) {
  std::vector<std::string> names;
  for (const PeerKind& peer : peers) names.push_back(peer.name);
  return names;
}

class Peers : public ::testing::Test {
 protected:
  ~Peers() override { unsetenv("FUSEBOX_LITERT"); }
};

TEST_F(Peers, IncludeLiteRtWhereItsLibraryIsNamed) {
  unsetenv("FUSEBOX_LITERT");
  EXPECT_THAT(Names(PeersOf({})), ElementsAre("TFLite + XNNPACK", "ONNX Runtime"));
  EXPECT_THAT(Names(PeersOf({.kernels = true})), ElementsAre("TFLite"));
  setenv("FUSEBOX_LITERT", "/nowhere/libtensorflowlite_c.so", 1);
  const auto peers = PeersOf({});
  ASSERT_THAT(Names(peers), ElementsAre("TFLite + XNNPACK", "LiteRT", "ONNX Runtime"));
  const auto opened = peers[1].open("no.tflite", 1);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("/nowhere/libtensorflowlite_c.so"));
}

TEST_F(Peers, RunANet) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  std::string why;
  setenv("FUSEBOX_LITERT", testing::PeerFile("libtensorflowlite_c.so", &why).c_str(), 1);
  const std::string path = testing::TestDir() + "/net.tflite";
  const auto& nets = WrittenNets();
  const auto letters =
      std::ranges::find(nets, "letters", [](const WrittenNet& net) { return std::string(net.name); });
  ASSERT_TRUE(tflite::WriteFile(letters->make(), path));
  const auto ours = testing::Open(path, *testing::Plugins({}));
  ASSERT_TRUE(ours && FillInputs(**ours) && (*ours)->Run());
  for (const PeerKind& kind : PeersOf({})) {
    const auto peer = kind.open(path, 1);
    ASSERT_TRUE(peer) << kind.name << ": " << peer.error().message;
    EXPECT_TRUE((*peer)->Feed(**ours)) << kind.name;
    EXPECT_TRUE((*peer)->Run()) << kind.name;
    EXPECT_TRUE((*peer)->Compare(**ours)) << kind.name;
  }
}

}  // namespace
}  // namespace fusebox::bench
