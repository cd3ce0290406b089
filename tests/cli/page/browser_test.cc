// SPDX-License-Identifier: Apache-2.0
// The page in headless Chromium, through puppeteer-core (tests/peers, `./dev setup browser`).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
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

// A profile with all that `bench` writes: a partition, a span, and the peak of the machine.
constexpr std::string_view kProfile = R"({"contestants": [{"profile": {
  "runs": 3, "run_ms": 250, "nodes_ms": 200.5, "peak": {"flops": 5e10}, "rows": [
  {"type": "FULLY_CONNECTED", "name": "dense;y", "who": "fusebox.cpu", "function": "main", "node": 0, "nodes": 1,
   "inside": false, "avg_ms": 150, "calls": 1, "flops": 128, "of_peak": 0.5},
  {"type": "gemm", "name": "", "who": "fusebox.cpu", "inside": true, "avg_ms": 0.05, "calls": 1, "flops": 0},
  {"type": "PARTITION", "name": "", "who": "fusebox.cpu", "function": "main", "node": 3, "nodes": 2,
   "inside": false, "avg_ms": 50, "calls": 1, "flops": 0},
  {"type": "TANH", "name": "new_state", "who": "fusebox.cpu", "function": "loop_body", "node": 1, "nodes": 1,
   "inside": true, "avg_ms": 0.5, "calls": 3, "flops": 8}]}}]})";

// A report with all that `convert` writes.
constexpr std::string_view kReport =
    R"({"source": "saved_model", "error": "the conversion stopped", "signatures": [],
  "notes": ["a note"], "refused": [{"signature": "train", "why": "it has a gradient"}],
  "sites": [
  {"function": "main", "location": "block/gelu", "composite": "acme.gelu", "fused": true, "why": "", "verification":
   "agrees", "emitted": ["GELU"], "rules": [{"rule": "gelu", "plugin": "acme", "plugin_version": "1.0", "outcome": "fused",
   "reasons": []}]},
  {"function": "main", "location": "", "composite": "acme.norm", "fused": false, "why": "declined", "verification": "",
   "emitted": [], "rules": [{"rule": "norm", "plugin": "acme", "plugin_version": "1.0", "outcome": "not applicable",
   "reasons": ["axis 0", "no scale"]}]},
  {"function": "main", "location": "x", "composite": "acme.none", "fused": true, "why": "no plugin has a rule", "verification":
   "", "emitted": ["ADD"], "rules": []}],
  "variables": [{"name": "step", "type": "i32[]", "mutability": "mutable", "why": "assigned"}],
  "layers": [{"location": "block/dense", "op": "FULLY_CONNECTED", "rms_error": 0.00123456, "relative": 0.01}],
  "ops_before": {"Gelu": 1}, "ops_after": {"GELU": 1, "ADD": 2}})";

void WriteText(std::string_view text, const std::string& name) {
  ASSERT_TRUE(WriteFile(PathOf(name), std::as_bytes(std::span(text))));
}

// The page of a model: of "small.tflite", "small.html".
void Inspect(const std::string& model, const std::string& page, const std::string& more = "") {
  const Finished done =
      Fusebox("inspect " + PathOf(model) + ".tflite --html " + PathOf(page) + ".html" + more);
  ASSERT_EQ(done.status, 0) << done.err;
}

// One page for each way to write one, and for each kind of data.
void WritePages() {
  Write(*SmallModel(), PathOf("small.tflite"));
  Write(*ChainModel(2000), PathOf("large.tflite"));
  Write(*ForeignModel(), PathOf("foreign.tflite"));
  for (const char* name : {"small", "large", "foreign"}) Inspect(name, name);
  WriteText(kProfile, "profile.json");
  WriteText(kReport, "report.json");
  Inspect("small", "all", " --profile " + PathOf("profile.json") + " --report " + PathOf("report.json"));
  const std::string kept = PathOf("kept.tflite"), report = " --report " + PathOf("kept.json");
  ASSERT_EQ(
      Fusebox("convert " + PathOf("small.tflite") + " -o " + kept + " --composites keep" + report).status, 0);
  ASSERT_EQ(Fusebox("bench " + kept + " --json --profile --num-runs 2 --min-secs 0 --warmup-min-secs 0",
                    PathOf("kept_profile.json"))
                .status,
            0);
  Inspect("kept", "kept", " --profile " + PathOf("kept_profile.json") + report);
  const std::string compare = "compare " + PathOf("small.tflite") + " --with f64 --layers --atol ";
  ASSERT_EQ(Fusebox(compare + "0 --rtol 0 --html " + PathOf("layers.html")).status, 1);
  ASSERT_EQ(Fusebox(compare + "1 --html " + PathOf("equal.html")).status, 0);
}

TEST(PageInBrowser, IsUsedByMouseAndKeys) {
  FUSEBOX_NEEDS_PEER("node_modules/puppeteer-core");
  const std::string browser = BrowserPath();
  if (browser.empty()) {
    const std::string why = "no Chromium is installed (./dev setup browser)";
    if (fusebox::testing::PeersRequired()) FAIL() << why << ", but FUSEBOX_PEERS=required";
    GTEST_SKIP() << why;
  }
  ASSERT_NO_FATAL_FAILURE(WritePages());
  std::string why;
  const std::string puppeteer = fusebox::testing::PeerFile("node_modules/puppeteer-core", &why);
  const std::string command = "node " FUSEBOX_SOURCE_DIR "/tests/cli/page/page_test.js " + puppeteer + " " +
                              browser + " " + PathOf("") + " >" + PathOf("browser.txt") + " 2>&1";
  const int status = std::system(command.c_str());
  const std::string printed = ReadTextFile(PathOf("browser.txt")).value_or("");
  EXPECT_EQ(status, 0) << printed;
  std::cout << printed;
}

}  // namespace
}  // namespace fusebox::cli::page
