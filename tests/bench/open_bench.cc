// SPDX-License-Identifier: Apache-2.0
// How long a model takes to open, beside stock TFLite, and how long a plugin takes to load.
//
//   FUSEBOX_PEER_DIR=DIR open_bench [--plugin FOLDER]... [--rounds N] MODEL...
//
// "open" is everything between a path and the first inference: read, check, choose and initialize kernels,
// plan. "first result" includes that inference, of zeros. Each model is opened by both in turn, many times.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/session.h"
#include "tests/bench/row.h"
#include "tests/testing/stock.h"

namespace {

using Clock = std::chrono::steady_clock;

double Micros(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

// Closing is not part of opening. Opened models outlive the clock, and the allocator tidies up after closing
// before the clock starts: glibc does so at the next request for more than a kilobyte, which would otherwise
// be the first request of the first model to open.
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

// The name of a job: a folder's name tells files of the same name apart.
std::string JobOf(const std::filesystem::path& path) {
  return path.parent_path().filename().string() + "/" + path.stem().string();
}

// Microseconds from a path on: until the first inference can start, or with its result.
fusebox::Result<double> TimeHere(const std::string& path, const std::shared_ptr<fusebox::Registry>& registry,
                                 bool run) {
  Settle();
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto session, OpenHere(path, registry));
  if (run) FUSEBOX_TRY(session->Run());
  return Micros(start);
}

fusebox::Result<double> TimeStock(const std::string& path, bool run) {
  Settle();
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto stock, fusebox::testing::Stock::Open(path));
  for (int i = 0; run && i < stock->input_count(); ++i) {
    FUSEBOX_ASSIGN(const fusebox::Type type, stock->input_type(i));
    const std::vector<std::byte> zeros(fusebox::ByteSize(type).value_or(0));
    FUSEBOX_TRY(stock->SetInput(i, {type, fusebox::Buffer::Borrow(zeros)}));
  }
  if (run) FUSEBOX_TRY(stock->Run());
  return Micros(start);
}

// False when this host fails.
bool Compare(const std::string& path, const std::shared_ptr<fusebox::Registry>& registry, int rounds,
             bool run) {
  using fusebox::bench::kOurs, fusebox::bench::WriteError, fusebox::bench::WriteRow;
  const fusebox::bench::Metric metric{"open", JobOf(path), run ? "first result" : "open", "us"};
  for (int round = 0; round < rounds; ++round) {
    const auto ours = TimeHere(path, registry, run), stock = TimeStock(path, run);
    if (!ours) return WriteError("open", metric.job, kOurs, ours.error().message), false;
    WriteRow(metric, kOurs, round, *ours);
    if (stock) WriteRow(metric, "TFLite", round, *stock);
    else if (round == 0) WriteError("open", metric.job, "TFLite", stock.error().message);
  }
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
  int rounds = 41;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--plugin" && i + 1 < argc) config.plugins.push_back(argv[++i]);
    else if (std::string(argv[i]) == "--rounds" && i + 1 < argc) rounds = std::max(1, std::atoi(argv[++i]));
    else models.push_back(argv[i]);
  }
  if (const double load = LoadPlugins(config); !config.plugins.empty()) {
    std::string names;
    for (const std::string& plugin : config.plugins)
      names += (names.empty() ? "" : ", ") + std::filesystem::path(plugin).filename().string();
    fusebox::bench::WriteRow({"open", "plugin " + names, "load", "us"}, fusebox::bench::kOurs, 0, load);
  }
  const auto registry = fusebox::Registry::Create(config);
  if (!registry) return std::fprintf(stderr, "%s\n", registry.error().message.c_str()), 2;
  bool good = true;
  for (const std::string& model : models) {
    for (const bool run : {false, true}) good = Compare(model, *registry, rounds, run) && good;
  }
  return good ? 0 : 1;
}
