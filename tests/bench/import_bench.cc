// SPDX-License-Identifier: Apache-2.0
// Files with Flex loops: opening them beside converting and opening the result, and running the fused op
// beside the loop.
//
//   import_bench --rnn FOLDER --dir DIR [--rounds N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/words.h"
#include "host/session.h"
#include "tests/bench/row.h"
#include "tests/testing/flex.h"
#include "tests/testing/keras_cases.h"

namespace {

using namespace fusebox;
using bench::kOurs;

constexpr int64_t kSteps = 50;
constexpr int64_t kFeatures = 32;

double Micros(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// A Keras file of one layer with `gates` columns per unit.
Result<std::string> WriteLayer(const std::string& folder, const std::string& layer, int gates,
                               int64_t units) {
  const nlohmann::json config = {
      {"units", units},   {"activation", "tanh"}, {"recurrent_activation", "sigmoid"},
      {"use_bias", true}, {"reset_after", false}, {"return_sequences", false}};
  const testing::KerasCase one = testing::OneLayer(layer, layer, config, {1, kSteps, kFeatures},
                                                   {{"kernel", {kFeatures, gates * units}},
                                                    {"recurrent_kernel", {units, gates * units}},
                                                    {"bias", {gates * units}}});
  const std::string source = folder + "/" + layer + ".h5";
  testing::WriteH5(source, one.model);
  const std::string path = folder + "/" + layer + ".tflite";
  FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(source));
  FUSEBOX_TRY(testing::WriteFlex(std::move(conversion), path));
  return path;
}

Result<std::unique_ptr<Session>> OpenSession(const std::string& path, const ModelOptions& options) {
  FUSEBOX_ASSIGN(auto model, Model::Open(path, options));
  FUSEBOX_ASSIGN(auto session, Session::Create(std::move(model)));
  FUSEBOX_TRY(session->Prepare());
  return session;
}

// The bound of opening: without the write, but with the copy into memory that the next step reads.
Status ConvertAndOpen(const std::string& path, const std::shared_ptr<Registry>& registry,
                      const std::string& to, double& micros) {
  converter::Conversion conversion = converter::FromTflite(path);
  conversion.options.registry = registry;
  conversion.options.verify = converter::Verification::kOff;
  Result<converter::Converted> converted = Invalid("");
  micros = Micros([&] { converted = conversion.Convert(); });
  FUSEBOX_TRY(converted);
  FUSEBOX_TRY(converted->Write(to));
  Status opened;
  micros += Micros([&] {
    if (const auto session = OpenSession(to, {.registry = registry}); !session)
      opened = std::unexpected(session.error());
  });
  return opened;
}

Status Compare(const std::string& job, const std::string& path, const std::shared_ptr<Registry>& registry,
               int rounds) {
  const ModelOptions imported{.registry = registry, .import_ops = ImportOps::kAuto};
  ModelOptions loops = imported;
  loops.fuse = false;
  FUSEBOX_ASSIGN(const auto fused, OpenSession(path, imported));
  FUSEBOX_ASSIGN(const auto loop, OpenSession(path, loops));
  for (int round = 0; round < rounds; ++round) {
    const double open = Micros([&] { static_cast<void>(OpenSession(path, imported)); });
    double apart = 0;
    FUSEBOX_TRY(ConvertAndOpen(path, registry, path + ".out", apart));
    bench::WriteRow({"imports", job, "open", "us"}, kOurs, round, open);
    bench::WriteRow({"imports", job, "open", "us"}, "convert and open", round, apart);
    const double ours = Micros([&] { static_cast<void>(fused->Run()); });
    const double theirs = Micros([&] { static_cast<void>(loop->Run()); });
    bench::WriteRow({"imports", job, "run", "us"}, kOurs, round, ours);
    bench::WriteRow({"imports", job, "run", "us"}, "loop", round, theirs);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  config.search_default_path = false;
  std::string folder;
  int rounds = 41;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--rnn") config.plugins.push_back(argv[i + 1]);
    else if (flag == "--dir") folder = argv[i + 1];
    else if (flag == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  if (folder.empty()) return std::fprintf(stderr, "import_bench: --dir is missing\n"), 2;
  std::filesystem::create_directories(folder);
  const auto registry = Registry::Create(config);
  if (!registry) return std::fprintf(stderr, "%s\n", registry.error().message.c_str()), 2;
  bool good = true;
  const std::pair<const char*, int> layers[] = {{"LSTM", 4}, {"GRU", 3}, {"SimpleRNN", 1}};
  for (const auto& [layer, gates] : layers) {
    for (const int64_t units : {16, 128}) {
      const std::string job = std::string(layer) + " of " + std::to_string(units) + " units";
      const auto path = WriteLayer(folder, layer, gates, units);
      const Status done = path ? Compare(job, *path, *registry, rounds) : std::unexpected(path.error());
      if (!done) bench::WriteError("imports", job, kOurs, done.error().message);
      good = good && done;
    }
  }
  return good ? 0 : 1;
}
