// SPDX-License-Identifier: Apache-2.0
// The page in headless Chromium, through puppeteer-core (tests/peers, `./dev setup browser`).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "host/base/buffer.h"
#include "tests/cli/page/models.h"
#include "tests/testing/peer.h"

namespace fusebox::cli::page {
namespace {

// Of the first program with one of these names; empty: none.
std::string BrowserPath() {
  const char* const path = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (std::filesystem::exists(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

TEST(PageInBrowser, IsUsedByMouseAndKeys) {
  FUSEBOX_NEEDS_PEER("node_modules/puppeteer-core");
  const std::string browser = BrowserPath();
  if (browser.empty()) {
    const std::string why = "no Chromium is installed (./dev setup browser)";
    if (fusebox::testing::PeersRequired()) FAIL() << why << ", but FUSEBOX_PEERS=required";
    GTEST_SKIP() << why;
  }
  Write(*SmallModel(), PathOf("small.tflite"));
  Write(*ChainModel(2000), PathOf("large.tflite"));
  for (const char* name : {"small", "large"}) {
    const Finished done = Fusebox("inspect " + PathOf(name) + ".tflite --html " + PathOf(name) + ".html");
    ASSERT_EQ(done.status, 0) << done.err;
  }
  ASSERT_EQ(Fusebox("compare " + PathOf("small.tflite") + " --with f64 --layers --atol 0 --rtol 0 --html " +
                    PathOf("layers.html"))
                .status,
            1);
  std::string why;
  const std::string puppeteer = fusebox::testing::PeerFile("node_modules/puppeteer-core", &why);
  const std::string command = "node " FUSEBOX_SOURCE_DIR "/tests/cli/page/page_test.js " + puppeteer + " " +
                              browser + " " + PathOf("small.html") + " " + PathOf("large.html") + " " +
                              PathOf("layers.html") + " >" + PathOf("browser.txt") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadTextFile(PathOf("browser.txt")).value_or("");
}

}  // namespace
}  // namespace fusebox::cli::page
