// SPDX-License-Identifier: Apache-2.0
// Measures hosted delegates. The delegate is XNNPACK of stock TFLite 2.9. plugins/tflite_delegate and stock
// run the same nets with it, those that it takes as a whole. Each file has a process, in which both take
// turns on one thread.
//
//   hosted_bench --plugin FOLDER [--seconds S] FILE.tflite...
//
// Files with other ops, and those that one side refuses, are left out.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fusebox/tflite/c/common.h"
#include "tests/bench/interleave.h"
#include "tests/bench/names.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"
#include "tests/testing/peer.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
constexpr char kBench[] = "hosted";
constexpr char kPeer[] = "TFLite + XNNPACK";
constexpr char kCreate[] = "TfLiteXNNPackDelegateCreate";
constexpr char kDestroy[] = "TfLiteXNNPackDelegateDelete";
constexpr unsigned kSecondsForOneFile = 60;
constexpr double kLeastTime = 0.005;  // ms; a net that takes less measures the call, not the net

Result<std::unique_ptr<Session>> OpenHosted(const std::string& path, const NetArguments& arguments,
                                            const std::string& library) {
  Config config;
  config.search_default_path = false;
  config.plugins = arguments.plugins;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  Config::Delegate hosted{"tflite"};
  hosted.options.Set("library", library);
  hosted.options.Set("create", kCreate);
  hosted.options.Set("destroy", kDestroy);
  FUSEBOX_ASSIGN(const auto model,
                 Model::Open(path, {.registry = registry, .delegates = std::vector{std::move(hosted)}}));
  FUSEBOX_ASSIGN(auto session, Session::Create(model, {.threads = 1}));
  FUSEBOX_TRY(FillInputs(*session));
  FUSEBOX_TRY(session->Run());
  for (const Placement& row : session->placements())
    if (!row.runner.starts_with("tflite (")) return Unsupported("the delegate runs only a part");
  return session;
}

// Rounds as [ours, theirs] in ms.
Result<json> Measure(const std::string& path, const NetArguments& arguments) {
  std::string why;
  const std::string library = testing::PeerFile("libtensorflowlite_c.so", &why);
  if (library.empty()) return NotFound(why);
  FUSEBOX_ASSIGN(const auto ours, OpenHosted(path, arguments, library));
  using Create = TfLiteDelegate* (*)(const void*);
  const auto create =
      reinterpret_cast<Create>(dlsym(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), kCreate));
  FUSEBOX_ASSIGN(const auto stock, testing::Stock::WithDelegate(path, create(nullptr)));
  FUSEBOX_TRY(Feed(*stock, *ours));
  FUSEBOX_TRY(stock->Run());
  FUSEBOX_ASSIGN(const auto rounds,
                 Interleave([&] { return ours->Run(); }, [&] { return stock->Run(); }, arguments.seconds, 1));
  json out = json::array();
  for (const Round& round : rounds) out.push_back({round.a, round.b});
  return out;
}

// The median time of a run of a net, in ms.
struct Times {
  double ours = 0;
  double peer = 0;

  explicit Times(const json& rounds) {
    std::vector<double> both[2];
    for (const json& round : rounds)
      for (size_t i = 0; i < 2; ++i) both[i].push_back(round[i]);
    ours = Median(std::move(both[0]));
    peer = Median(std::move(both[1]));
  }
};

class Summary {
 public:
  void Add(const Times& times) {
    if (times.peer < kLeastTime) more_.push_back(1000 * (times.ours - times.peer));
    else ratios_.push_back(times.ours / times.peer);
  }
  void Write() const {
    if (!ratios_.empty()) {
      const char* const of = "all nets of 5 us or more";
      WriteRow({kBench, of, "nets", ""}, kOurs, 0, static_cast<double>(ratios_.size()));
      WriteRow({kBench, of, "median of ours / peer", ""}, kOurs, 0, Median(ratios_));
      WriteRow({kBench, of, "largest ours / peer", ""}, kOurs, 0, *std::ranges::max_element(ratios_));
    }
    if (!more_.empty()) {
      const char* const of = "all smaller nets";
      WriteRow({kBench, of, "nets", ""}, kOurs, 0, static_cast<double>(more_.size()));
      WriteRow({kBench, of, "median of ours - peer", "us"}, kOurs, 0, Median(more_));
      WriteRow({kBench, of, "largest ours - peer", "us"}, kOurs, 0, *std::ranges::max_element(more_));
    }
  }

 private:
  std::vector<double> ratios_, more_;
};

void Compare(const NetArguments& arguments) {
  const auto names = NamesOf(arguments.files);
  Summary summary;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto said = InChild(
        [&] {
          const auto rounds = Measure(arguments.files[i], arguments);
          return rounds ? rounds->dump() : std::string();
        },
        kSecondsForOneFile);
    if (!said || said->empty()) continue;
    const json rounds = json::parse(*said);
    const Times times(rounds);
    const Metric metric{kBench, names[i], times.peer < kLeastTime ? "run of a smaller net" : "run", "ms"};
    int number = 0;
    for (const json& round : rounds) {
      WriteRow(metric, kOurs, number, round[0]);
      WriteRow(metric, kPeer, number++, round[1]);
    }
    summary.Add(times);
  }
  summary.Write();
}

int Main(int argc, char** argv) {
  NetArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--plugin" && i + 1 < argc) arguments.plugins.emplace_back(argv[++i]);
    else if (word == "--seconds" && i + 1 < argc) arguments.seconds = std::atof(argv[++i]);
    else arguments.files.push_back(word);
  }
  if (arguments.plugins.empty() || arguments.files.empty()) {
    std::fprintf(stderr, "usage: hosted_bench --plugin FOLDER [--seconds S] FILE.tflite...\n");
    return 2;
  }
  Compare(arguments);
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main(argc, argv); }
