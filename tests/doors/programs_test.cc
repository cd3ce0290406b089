// SPDX-License-Identifier: Apache-2.0
// Programs of the C API that run with stock TensorFlow Lite's library and with ours.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/doors/models.h"

namespace fusebox::doors {
namespace {

const std::string kBuild = FUSEBOX_BUILD_DIR;
const std::string kOurs = kBuild + "/lib/fusebox/tflite";

// The folder of stock's library; empty: not here.
std::string Stock() {
  const char* folder = std::getenv("FUSEBOX_PEER_DIR");
  if (folder == nullptr || !std::filesystem::exists(std::string(folder) + "/libtensorflowlite_c.so"))
    return "";
  return folder;
}

struct Ended {
  int status;
  std::string out;
};

Ended RunWith(const std::string& folder, const std::string& command) {
  FILE* pipe = popen(("LD_LIBRARY_PATH=" + folder + " " + command + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> part;
  for (size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) out.append(part.data(), n);
  return {pclose(pipe), out};
}

std::string ThreeOps() {
  return kBuild + "/bin/three_ops " + WriteModel(ThreeOpsModel(), "three_ops.tflite");
}

TEST(Programs, RunTheirOpsWithOurLibrary) {
  const Ended ours = RunWith(kOurs, ThreeOps());
  EXPECT_EQ(ours.status, 0) << ours.out;
  // 3 * x + 7 of x = 0, 1, 2, 3; those above 10; the sum so far.
  EXPECT_TRUE(
      ours.out.contains("scaled [ 1 4 ]: 7 10 13 16\nchosen [ 2 ]: 13 16\nsum [ 1 4 ]: 7 10 13 16\n"
                        "scaled [ 1 4 ]: 10 13 16 19\nchosen [ 3 ]: 13 16 19\nsum [ 1 4 ]: 17 23 29 35\n"))
      << ours.out;
}

TEST(Programs, PrintTheSameWithEitherLibrary) {
  if (Stock().empty()) GTEST_SKIP() << "FUSEBOX_PEER_DIR has no libtensorflowlite_c.so";
  const Ended stock = RunWith(Stock(), ThreeOps());
  EXPECT_EQ(stock.status, 0) << stock.out;
  const auto lines = [](const std::string& out) {  // both report an Invoke that comes too early
    std::string kept;
    for (size_t at = 0; at < out.size();) {
      const size_t end = std::min(out.find('\n', at), out.size() - 1);
      const std::string line = out.substr(at, end + 1 - at);
      if (!line.starts_with("ERROR") && !line.starts_with("INFO")) kept += line;
      at = end + 1;
    }
    return kept;
  };
  EXPECT_EQ(lines(RunWith(kOurs, ThreeOps()).out), lines(stock.out));
}

// Shared libraries interpose: the functions of the first one are called, and none of the two mixes with the
// other.
TEST(Programs, MayBeLinkedWithBothLibraries) {
  if (Stock().empty()) GTEST_SKIP() << "FUSEBOX_PEER_DIR has no libtensorflowlite_c.so";
  const std::string model = WriteModel(ChainModel(1, 4), "chain.tflite");
  for (const std::string first : {"ours", "stock"}) {
    const Ended ended = RunWith(Stock(), kBuild + "/bin/both_" + first + "_first " + model);
    EXPECT_EQ(ended.status, 0) << ended.out;
    EXPECT_TRUE(ended.out.contains("linked: " + first + " -1\n")) << ended.out;
    EXPECT_TRUE(ended.out.contains("loaded: ours -1\n")) << ended.out;
    EXPECT_TRUE(ended.out.contains("loaded: stock -1\n")) << ended.out;
  }
}

}  // namespace
}  // namespace fusebox::doors
