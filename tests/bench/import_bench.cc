// SPDX-License-Identifier: Apache-2.0
// Files with Flex loops: opening them beside converting and opening the result, with all libraries and
// plugins loaded, and in processes of their own; running the fused op beside the loop, in this host and in
// stock TFLite, for which its lists become tensors.
//
//   import_bench --rnn FOLDER --fusebox PROGRAM --dir DIR [--rounds N]
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
#include "tests/testing/stock.h"

namespace {

using namespace fusebox;
using bench::kOurs;

constexpr int kProcesses = 11;  // of each kind per job
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

Result<converter::Converted> Convert(const std::string& path, const std::shared_ptr<Registry>& registry,
                                     converter::Composites composites) {
  converter::Conversion conversion = converter::FromTflite(path);
  conversion.options.registry = registry;
  conversion.options.composites = composites;
  conversion.options.verify = converter::Verification::kOff;
  return conversion.Convert();
}

// The bound of opening: without the write.
Status ConvertAndOpen(const std::string& path, const std::shared_ptr<Registry>& registry,
                      const std::string& to, double& micros) {
  Result<converter::Converted> converted = Invalid("");
  micros = Micros([&] { converted = Convert(path, registry, converter::Composites::kFuse); });
  FUSEBOX_TRY(converted);
  FUSEBOX_TRY(converted->Write(to));
  micros += Micros([&] { converted = Invalid("freed"); });  // as opening frees what it converts
  Status opened;
  micros += Micros([&] {
    if (const auto session = OpenSession(to, {.registry = registry}); !session)
      opened = std::unexpected(session.error());
  });
  return opened;
}

Result<std::unique_ptr<testing::Stock>> OpenStock(const std::string& path,
                                                  const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const auto loop, Convert(path, registry, converter::Composites::kInline));
  const std::string file = path + ".loop";
  FUSEBOX_TRY(loop.Write(file));
  return testing::Stock::Open(file);
}

// The time of a command in milliseconds.
Result<double> TimeOf(const std::string& command) {
  int status = 0;
  const double micros = Micros([&] { status = std::system((command + " >/dev/null 2>&1").c_str()); });
  if (status != 0) return Invalid(command + " failed");
  return micros / 1000;
}

Status CompareProcesses(const std::string& job, const std::string& path, const std::string& program,
                        const std::string& rnn) {
  const std::string plugin = " --plugin '" + rnn + "' ";
  const std::string file = "'" + path + "'";
  const std::string converted = "'" + path + ".fused'";
  const std::string fusebox = "FUSEBOX_PLUGIN_PATH= '" + program + "'";
  for (int round = 0; round < kProcesses; ++round) {
    FUSEBOX_ASSIGN(const double ours, TimeOf(fusebox + " run " + file + plugin));
    FUSEBOX_ASSIGN(const double convert,
                   TimeOf(fusebox + " convert " + file + plugin + "--verify off -o " + converted));
    FUSEBOX_ASSIGN(const double run, TimeOf(fusebox + " run " + converted + plugin));
    bench::WriteRow({"imports", job, "run of a process", "ms"}, kOurs, round, ours);
    bench::WriteRow({"imports", job, "run of a process", "ms"}, "convert and run", round, convert + run);
  }
  return {};
}

Status Compare(const std::string& job, const std::string& path, const std::shared_ptr<Registry>& registry,
               int rounds) {
  const ModelOptions imported{.registry = registry, .import_ops = ImportOps::kAuto};
  ModelOptions loops = imported;
  loops.fuse = false;
  FUSEBOX_ASSIGN(const auto fused, OpenSession(path, imported));
  FUSEBOX_ASSIGN(const auto loop, OpenSession(path, loops));
  const auto stock = OpenStock(path, registry);
  if (!stock) bench::WriteError("imports", job, "TFLite's loop", stock.error().message);
  for (int round = 0; round < rounds; ++round) {
    // The first to convert in a round finds less of the code in caches.
    const auto open_now = [&] { return Micros([&] { static_cast<void>(OpenSession(path, imported)); }); };
    double apart = 0;
    double open = round % 2 == 0 ? open_now() : 0;
    FUSEBOX_TRY(ConvertAndOpen(path, registry, path + ".out", apart));
    if (round % 2 != 0) open = open_now();
    bench::WriteRow({"imports", job, "open", "us"}, kOurs, round, open);
    bench::WriteRow({"imports", job, "open", "us"}, "convert and open", round, apart);
    const double ours = Micros([&] { static_cast<void>(fused->Run()); });
    const double theirs = Micros([&] { static_cast<void>(loop->Run()); });
    bench::WriteRow({"imports", job, "run", "us"}, kOurs, round, ours);
    bench::WriteRow({"imports", job, "run", "us"}, "loop", round, theirs);
    if (!stock) continue;
    const double stocks = Micros([&] { static_cast<void>((*stock)->Run()); });
    bench::WriteRow({"imports", job, "run", "us"}, "TFLite's loop", round, stocks);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  config.search_default_path = false;
  std::string folder;
  std::string program;
  int rounds = 41;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--rnn") config.plugins.push_back(argv[i + 1]);
    else if (flag == "--dir") folder = argv[i + 1];
    else if (flag == "--fusebox") program = argv[i + 1];
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
      Status done = path ? Compare(job, *path, *registry, rounds) : std::unexpected(path.error());
      if (done && !program.empty()) done = CompareProcesses(job, *path, program, config.plugins.front());
      if (!done) bench::WriteError("imports", job, kOurs, done.error().message);
      good = good && done;
    }
  }
  return good ? 0 : 1;
}
