// SPDX-License-Identifier: Apache-2.0
// How long a model takes to open, beside stock TFLite, and how long a plugin takes to load.
//
//   FUSEBOX_PEER_DIR=DIR open_bench [--plugin FOLDER]... MODEL...
//
// "open" is everything between a path and the first inference: read, check, choose and initialise kernels, plan. Each model is opened
// by both in turn, many times; medians and their ratio are printed.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/session.h"
#include "tests/testing/stock.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 41;

double Micros(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Closing is not part of opening. What was opened outlives the clock, and what closing leaves for the allocator to tidy up is tidied
// before the clock starts: glibc does so at the next request for more than a kilobyte, which is otherwise that of the first to open.
void Settle() {
  void* volatile large = std::malloc(4096);
  std::free(large);
}

fusebox::Result<std::unique_ptr<fusebox::Session>> OpenHere(
    const std::string& path, const std::shared_ptr<fusebox::Registry>& registry) {
  FUSEBOX_ASSIGN(const auto model, fusebox::Model::Open(path, {.registry = registry}));
  FUSEBOX_ASSIGN(auto session, fusebox::Session::Create(model));
  for (size_t i = 0; i < session->inputs().size(); ++i) {
    fusebox::Shape shape = session->inputs()[i].type.shape;
    for (int64_t& d : shape.dims()) d = d < 0 ? 1 : d;
    FUSEBOX_TRY(session->Resize(static_cast<int>(i), shape));
  }
  FUSEBOX_TRY(session->Prepare());
  return session;
}

// False when one of the two does not take the file.
bool Compare(const std::string& path, const std::shared_ptr<fusebox::Registry>& registry,
             std::vector<double>& ratios) {
  std::vector<double> ours, stock;
  for (int round = 0; round < kRounds; ++round) {
    Settle();
    auto start = Clock::now();
    const auto here = OpenHere(path, registry);
    ours.push_back(Micros(start));
    Settle();
    start = Clock::now();
    const auto there = fusebox::testing::Stock::Open(path);
    stock.push_back(Micros(start));
    if (!here || !there) return false;
  }
  const double a = Median(ours), b = Median(stock);
  std::printf("%-60s %10.1f %10.1f %7.2f\n", std::filesystem::path(path).filename().c_str(), a, b, a / b);
  ratios.push_back(a / b);
  return true;
}

double LoadPlugins(const fusebox::Config& config) {
  const auto registry = fusebox::Registry::Create(config);
  const auto start = Clock::now();
  if (!registry || !(*registry)->LoadAll()) return -1;
  return Micros(start);
}

}  // namespace

int main(int argc, char** argv) {
  // Nor is it part of opening to fetch memory again that closing gave back to the system.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  fusebox::Config config;
  config.search_default_path = false;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--plugin" && i + 1 < argc) config.plugins.push_back(argv[++i]);
    else models.push_back(argv[i]);
  }
  const double load = LoadPlugins(config);
  if (!config.plugins.empty()) std::printf("load of the plugins' libraries: %.1f us\n", load);
  const auto registry = fusebox::Registry::Create(config);
  if (!registry) return std::fprintf(stderr, "%s\n", registry.error().message.c_str()), 2;
  std::printf("%-60s %10s %10s %7s\n", "open, median of 41, us", "fusebox", "TFLite", "ratio");
  std::vector<double> ratios;
  int skipped = 0;
  for (const std::string& model : models) skipped += !Compare(model, *registry, ratios);
  if (ratios.empty()) return std::fprintf(stderr, "no model was opened by both\n"), 1;
  std::printf("%zu models, %d not taken by both; ratio: median %.2f, worst %.2f\n", ratios.size(), skipped,
              Median(ratios), *std::max_element(ratios.begin(), ratios.end()));
  return 0;
}
