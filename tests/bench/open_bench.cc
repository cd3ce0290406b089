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

// Closing is not part of opening. What was opened outlives the clock, and what closing leaves for the
// allocator to tidy up is tidied before the clock starts: glibc does so at the next request for more than a
// kilobyte, which is otherwise that of the first to open.
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

// Microseconds; of nothing that failed.
struct Times {
  double open = 0, first_result = 0;
};

fusebox::Result<Times> TimeHere(const std::string& path, const std::shared_ptr<fusebox::Registry>& registry) {
  Times times;
  Settle();
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto session, OpenHere(path, registry));
  times.open = Micros(start);
  if (session->Run()) times.first_result = Micros(start);
  return times;
}

fusebox::Result<Times> TimeStock(const std::string& path) {
  Times times;
  Settle();
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto stock, fusebox::testing::Stock::Open(path));
  times.open = Micros(start);
  for (int i = 0; i < stock->input_count(); ++i) {
    FUSEBOX_ASSIGN(const fusebox::Type type, stock->input_type(i));
    const std::vector<std::byte> zeros(fusebox::ByteSize(type).value_or(0));
    FUSEBOX_TRY(stock->SetInput(i, {type, fusebox::Buffer::Borrow(zeros)}));
  }
  if (stock->Run()) times.first_result = Micros(start);
  return times;
}

// False when this host does not open the file.
bool Compare(const std::string& path, const std::shared_ptr<fusebox::Registry>& registry, int rounds) {
  using fusebox::bench::kOurs, fusebox::bench::WriteError, fusebox::bench::WriteRow;
  const fusebox::bench::Metric open{"open", JobOf(path), "open", "us"};
  const fusebox::bench::Metric first{"open", open.job, "first result", "us"};
  for (int round = 0; round < rounds; ++round) {
    const auto ours = TimeHere(path, registry), stock = TimeStock(path);
    if (!ours) return WriteError("open", open.job, kOurs, ours.error().message), false;
    WriteRow(open, kOurs, round, ours->open);
    if (stock) WriteRow(open, "TFLite", round, stock->open);
    else if (round == 0) WriteError("open", open.job, "TFLite", stock.error().message);
    if (!stock || stock->first_result == 0 || ours->first_result == 0) continue;
    WriteRow(first, kOurs, round, ours->first_result);
    WriteRow(first, "TFLite", round, stock->first_result);
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
  for (const std::string& model : models) good = Compare(model, *registry, rounds) && good;
  return good ? 0 : 1;
}
