// SPDX-License-Identifier: Apache-2.0
// The placement that estimates choose (fusebox.cost/1) beside all nodes on kernels, and beside all that
// XNNPACK supports on XNNPACK.
//
//   placement_bench --plugin FOLDER [--seconds S] [--files N] FILE.tflite...
//
// Measures N of the files of which XNNPACK supports a node, at equal distances. One thread.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/bench/interleave.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

constexpr char kAll[] = R"({"xnnpack": {"placement": "all"}})";
constexpr unsigned kSecondsForOneFile = 120;
constexpr const char* kPeers[] = {"kernels", "XNNPACK"};

// Files of different folders have the same name.
std::string JobOf(const std::filesystem::path& path) {
  return (path.parent_path().filename() / path.stem()).string();
}

struct Arguments {
  NetArguments net;
  size_t files = 40;
};

Result<std::unique_ptr<Session>> OpenPlaced(const std::string& path, const NetArguments& arguments,
                                            const ModelOptions& placed) {
  ModelOptions options = placed;
  Config config;
  config.search_default_path = false;
  config.plugins = arguments.plugins;
  FUSEBOX_ASSIGN(options.registry, Registry::Create(config));
  FUSEBOX_ASSIGN(const auto model, Model::Open(path, options));
  FUSEBOX_ASSIGN(auto session, Session::Create(model, {.threads = 1}));
  FUSEBOX_TRY(FillInputs(*session));
  FUSEBOX_TRY(session->Run());
  return session;
}

// Returns whether XNNPACK runs a node of it.
bool IsTaken(const std::string& path, const NetArguments& arguments) {
  const auto taken = InChild(
      [&]() -> std::string {
        const auto session = OpenPlaced(path, arguments, {.delegate_options = kAll});
        if (!session) return "no";
        const auto rows = (*session)->placements();
        return std::ranges::any_of(rows, [](const auto& r) { return r.runner.starts_with("xnnpack"); })
                   ? "yes"
                   : "no";
      },
      kSecondsForOneFile);
  return taken && *taken == "yes";
}

std::vector<std::string> Taken(const Arguments& arguments) {
  std::vector<std::string> taken;
  for (const std::string& file : arguments.net.files)
    if (IsTaken(file, arguments.net)) taken.push_back(file);
  std::vector<std::string> chosen;
  const size_t count = std::min(arguments.files, taken.size());
  for (size_t i = 0; i < count; ++i) chosen.push_back(taken[i * taken.size() / count]);
  return chosen;
}

Status Measure(const std::string& path, const NetArguments& arguments) {
  FUSEBOX_ASSIGN(const auto ours, OpenPlaced(path, arguments, {}));
  FUSEBOX_ASSIGN(const auto kernels,
                 OpenPlaced(path, arguments, {.delegates = std::vector<Config::Delegate>{}}));
  FUSEBOX_ASSIGN(const auto all, OpenPlaced(path, arguments, {.delegate_options = kAll}));
  const Metric time{"placement", JobOf(path), "run", "ms"};
  int number = 0;
  for (Session* other : {kernels.get(), all.get()}) {
    FUSEBOX_ASSIGN(const auto rounds, Interleave([&] { return ours->Run(); }, [&] { return other->Run(); },
                                                 arguments.seconds, 1));
    for (const Round& round : rounds) {
      WriteRow(time, kOurs, number, round.a);
      WriteRow(time, kPeers[other == all.get()], number, round.b);
      ++number;
    }
  }
  return {};
}

int Main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--plugin" && i + 1 < argc) arguments.net.plugins.push_back(argv[++i]);
    else if (word == "--seconds" && i + 1 < argc) arguments.net.seconds = std::atof(argv[++i]);
    else if (word == "--files" && i + 1 < argc) arguments.files = std::strtoul(argv[++i], nullptr, 10);
    else arguments.net.files.push_back(word);
  }
  bool good = true;
  for (const std::string& file : Taken(arguments)) {
    const auto why = InChild(
        [&]() -> std::string {
          const Status measured = Measure(file, arguments.net);
          std::fflush(stdout);
          return measured ? "" : measured.error().message;
        },
        kSecondsForOneFile);
    if (why && why->empty()) continue;
    WriteError("placement", JobOf(file), kOurs, why ? *why : why.error().message);
    good = false;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main(argc, argv); }
