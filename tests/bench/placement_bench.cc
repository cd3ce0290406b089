// SPDX-License-Identifier: Apache-2.0
// placement_bench SECONDS PLUGIN... -- FILE.tflite...: the placement by cost beside the best of two others:
// all nodes on kernels, and on XNNPACK all that it supports. They take turns in one process, on one thread.
// Writes rows.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

struct Placed {
  std::unique_ptr<Session> session;
  std::vector<double> times;  // ms
};

Result<Placed> Place(const std::string& path, const std::shared_ptr<Registry>& registry,
                     std::vector<Config::Delegate> delegates) {
  FUSEBOX_ASSIGN(const auto model,
                 Model::Open(path, {.registry = registry, .delegates = std::move(delegates)}));
  Placed out;
  FUSEBOX_ASSIGN(out.session, Session::Create(model, {.threads = 1}));
  FUSEBOX_TRY(FillInputs(*out.session));
  FUSEBOX_TRY(out.session->Run());
  return out;
}

// By cost, on kernels, on XNNPACK.
Result<std::vector<Placed>> PlaceAll(const std::string& path, const std::shared_ptr<Registry>& registry) {
  const Config::Delegate by_cost{"xnnpack"};
  Config::Delegate all{"xnnpack"};
  all.options.Set("placement", "all");
  std::vector<Placed> placed;
  for (const std::vector<Config::Delegate>& delegates : {std::vector{by_cost}, {}, std::vector{all}}) {
    FUSEBOX_ASSIGN(Placed made, Place(path, registry, delegates));
    placed.push_back(std::move(made));
  }
  return placed;
}

// The median of a turn, whose first run finds the caches full of other data.
Status TakeTurn(Placed& placed) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kRuns = 3;
  FUSEBOX_TRY(placed.session->Run());
  std::vector<double> times;
  while (times.size() < kRuns) {
    const auto begin = Clock::now();
    FUSEBOX_TRY(placed.session->Run());
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  placed.times.push_back(Median(std::move(times)));
  return {};
}

Status Compare(const std::string& path, const std::shared_ptr<Registry>& registry, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kLeastTurns = 6;
  FUSEBOX_ASSIGN(std::vector<Placed> placed, PlaceAll(path, registry));
  const auto start = Clock::now();
  while (placed[0].times.size() < kLeastTurns ||
         std::chrono::duration<double>(Clock::now() - start).count() < seconds)
    for (Placed& each : placed) FUSEBOX_TRY(TakeTurn(each));
  const Placed& best = Median(placed[1].times) < Median(placed[2].times) ? placed[1] : placed[2];
  const Metric metric{"placement", std::filesystem::path(path).stem().string(), "run", "ms"};
  for (size_t i = 0; i < best.times.size(); ++i) {
    WriteRow(metric, kOurs, static_cast<int>(i), placed[0].times[i]);
    WriteRow(metric, "best", static_cast<int>(i), best.times[i]);
  }
  return {};
}

int Main(const std::vector<std::string>& words) {
  const auto split = std::ranges::find(words, "--");
  if (words.size() < 3 || split == words.end()) {
    std::fprintf(stderr, "usage: placement_bench SECONDS PLUGIN... -- FILE.tflite...\n");
    return 2;
  }
  Config config;
  config.search_default_path = false;
  config.plugins.assign(words.begin() + 1, split);
  const auto registry = Registry::Create(config);
  if (!registry) {
    std::fprintf(stderr, "placement_bench: %s\n", registry.error().message.c_str());
    return 1;
  }
  for (auto file = split + 1; file != words.end(); ++file)
    if (const Status done = Compare(*file, *registry, std::atof(words[0].c_str())); !done)
      WriteError("placement", std::filesystem::path(*file).stem().string(), "neither", done.error().message);
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main({argv + 1, argv + argc}); }
