// SPDX-License-Identifier: Apache-2.0
// Starts one engine once and prints how long that takes. start.py runs this program again for each start.
//
//   start_bench ours PLUGINS MODEL [warm]
//   FUSEBOX_PEER_DIR=DIR start_bench TFLite - MODEL [warm]
//
// Prints three numbers: the microseconds until the first inference can start, the microseconds until its
// result (inputs are zeros), and the peak memory in MB. The time to find plugins counts. With "warm", the
// program loads the libraries of the engine before the clock starts: the library of TensorFlow Lite, or the
// libraries of all plugins.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "cli/bench/memory.h"
#include "host/session.h"
#include "tests/testing/peer.h"
#include "tests/testing/stock.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Started {
  double open = 0;
  double first = 0;
};

double Micros(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

void LoadAll(const std::string& plugins) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(plugins))
    if (entry.path().extension() == ".so") dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

fusebox::Result<Started> StartHere(const std::string& plugins, const std::string& path) {
  const auto start = Clock::now();
  fusebox::Config config;
  config.search_default_path = false;
  config.plugin_path = {plugins};
  FUSEBOX_ASSIGN(const auto registry, fusebox::Registry::Create(config));
  FUSEBOX_ASSIGN(const auto model, fusebox::Model::Open(path, {.registry = registry}));
  FUSEBOX_ASSIGN(const auto session, fusebox::Session::Create(model, {.threads = 1}));
  for (size_t i = 0; i < session->inputs().size(); ++i) {
    fusebox::Shape shape = session->inputs()[i].type.shape;
    for (int64_t& d : shape.dims()) d = d < 0 ? 1 : d;
    FUSEBOX_TRY(session->Resize(static_cast<int>(i), shape));
  }
  FUSEBOX_TRY(session->Prepare());
  const double open = Micros(start);
  FUSEBOX_TRY(session->Run());
  return Started{open, Micros(start)};
}

void LoadStock() {
  std::string why;
  const std::string library = fusebox::testing::PeerFile("libtensorflowlite_c.so", &why);
  if (!library.empty()) dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
}

fusebox::Result<Started> StartStock(const std::string& path) {
  const auto start = Clock::now();
  auto stock = fusebox::testing::Stock::WithXnnpack(path);
  if (!stock) stock = fusebox::testing::Stock::Open(path);
  if (!stock) return std::unexpected(stock.error());
  for (int i = 0; i < (*stock)->input_count(); ++i) {
    FUSEBOX_ASSIGN(const fusebox::Type type, (*stock)->input_type(i));
    const std::vector<std::byte> zeros(fusebox::ByteSize(type).value_or(0));
    FUSEBOX_TRY((*stock)->SetInput(i, {type, fusebox::Buffer::Borrow(zeros)}));
  }
  const double open = Micros(start);
  FUSEBOX_TRY((*stock)->Run());
  return Started{open, Micros(start)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: start_bench ours|TFLite PLUGINS MODEL [warm]\n"), 2;
  const bool ours = std::string(argv[1]) == "ours";
  if (argc > 4 && ours) LoadAll(argv[2]);
  if (argc > 4 && !ours) LoadStock();
  const auto started = ours ? StartHere(argv[2], argv[3]) : StartStock(argv[3]);
  if (!started) return std::fprintf(stderr, "%s\n", started.error().message.c_str()), 1;
  std::printf("%.1f %.1f %.2f\n", started->open, started->first,
              static_cast<double>(fusebox::cli::PeakResidentBytes()) / (1 << 20));
  return 0;
}
