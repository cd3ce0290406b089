// SPDX-License-Identifier: Apache-2.0
// Measures the gain of the weight cache: every model of cache_models.h without a cache, while the cache is
// built, and from the cache.
//
//   cache_bench --plugin FOLDER [--dir DIR] [--rounds N] [--small] [MODEL...]
//
// Each run is a separate process, with the plugin loaded and the model's pages in memory. The modes take
// turns. "unshared" is how XNNPACK is used without a cache: every signature packs its own weights. Without a
// cache ours still share them in memory. "open" is Model::Open and Session::Create; "init" adds the planning
// of all signatures, in which weights are packed; "first" goes from Open to the first output (llm: 64 tokens
// of prefill, then one of decode); "steady" is one more run (llm: of decode). "packed" are the bytes that
// XNNPACK packed, "reused" the bytes that it did not have to pack.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include <spdlog/sinks/ostream_sink.h>

#include "host/base/log.h"
#include "host/session.h"
#include "tests/bench/cache_models.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Row = std::map<std::string, double>;  // by column

double Millis(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

// "VmHWM" and so on, in MB.
double StatusOf(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

struct Arguments {
  fs::path dir = fs::temp_directory_path() / "fusebox_cache_bench";
  int rounds = 5;
  Size size = Size::kFull;
  std::vector<std::string> plugins, models;
};

// One process's work.

Status Zero(Session& session) {
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    FUSEBOX_ASSIGN(const auto data, session.InputData(static_cast<int>(i)));
    std::memset(data.data(), 0, data.size());
  }
  return {};
}

// The prompt, then the signature decode with the keys and values that it made.
Status StartDecode(Session& session) {
  FUSEBOX_TRY(Zero(session));
  FUSEBOX_TRY(session.Run());
  std::vector<Tensor> made;
  for (size_t i = 1; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor view, session.output(static_cast<int>(i)));
    made.push_back({view.type, Buffer::Copy(view.data.bytes())});
  }
  FUSEBOX_TRY(session.SelectSignature("decode"));
  FUSEBOX_TRY(Zero(session));
  for (size_t i = 0; i < made.size(); ++i) FUSEBOX_TRY(session.SetInput(static_cast<int>(i) + 1, made[i]));
  return {};
}

// Reads the bytes of weights from the plugin's log, in MB: packed, and reused.
void AddBytes(const std::string& said, Row& row) {
  const std::regex bytes(
      "bytes: (\\d+) packed, (\\d+) found, (\\d+) shared, (\\d+) packed again, (\\d+) private");
  const auto number = [](const std::ssub_match& m) { return std::stod(m.str()) / (1 << 20); };
  for (std::sregex_iterator at(said.begin(), said.end(), bytes), end; at != end; ++at) {
    row["packed MB"] = number((*at)[1]) + number((*at)[4]) + number((*at)[5]);
    row["reused MB"] = number((*at)[2]) + number((*at)[3]) - number((*at)[4]);
  }
}

// All that has to happen before the first run.
Status PrepareAll(Session& session, bool llm) {
  FUSEBOX_TRY(session.Prepare());
  if (!llm) return {};
  FUSEBOX_TRY(session.SelectSignature("decode"));
  FUSEBOX_TRY(session.Prepare());
  return session.SelectSignature("prefill");
}

Result<Row> Measure(const std::string& model_path, const std::string& options,
                    const std::vector<std::string>& plugins) {
  Config config;
  config.search_default_path = false;
  config.plugins = plugins;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  FUSEBOX_TRY(registry->LoadAll());
  const bool llm = model_path.find("llm") != std::string::npos;
  std::ostringstream said;
  Log("plugin").sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(said)};
  Log("plugin").set_level(spdlog::level::debug);
  Log("plugin").debug("the first line of a log reads the time zone");
  Row row;
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto model,
                 Model::Open(model_path, {.registry = registry, .delegate_options = options}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model, {.signature = llm ? "prefill" : ""}));
  row["open ms"] = Millis(start);
  FUSEBOX_TRY(PrepareAll(*session, llm));
  row["init ms"] = Millis(start);
  FUSEBOX_TRY(llm ? StartDecode(*session) : Zero(*session));
  FUSEBOX_TRY(session->Run());
  row["first ms"] = Millis(start);
  std::vector<double> steady;
  for (int i = 0; i < 7; ++i) {
    const auto begin = Clock::now();
    FUSEBOX_TRY(session->Run());
    steady.push_back(Millis(begin));
  }
  row["steady ms"] = Median(steady);
  row["peak MB"] = StatusOf("VmHWM");
  row["anon MB"] = StatusOf("RssAnon");
  AddBytes(said.str(), row);
  for (const std::string& notice : model->notices()) std::fprintf(stderr, "%s\n", notice.c_str());
  return row;
}

int Child(int argc, char** argv) {
  const auto row = Measure(argv[2], argv[3], std::vector<std::string>(argv + 4, argv + argc));
  if (!row) return std::fprintf(stderr, "%s\n", row.error().message.c_str()), 1;
  std::printf("%s\n", nlohmann::json(*row).dump().c_str());
  return 0;
}

// The parent: runs processes, writes rows.

Result<Row> RunChild(const std::string& model, const std::string& options, const Arguments& arguments) {
  int ends[2];
  if (pipe(ends) != 0) return Internal("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    std::vector<std::string> words = {"cache_bench", "--child", model, options};
    words.insert(words.end(), arguments.plugins.begin(), arguments.plugins.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = read(ends[0], chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return Internal(model + ": its process failed");
  return nlohmann::json::parse(text).get<Row>();
}

double MegabytesIn(const fs::path& dir) {
  double bytes = 0;
  if (!fs::exists(dir)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file()) bytes += static_cast<double>(entry.file_size());
  return bytes / (1 << 20);
}

struct Mode {
  const char* name;
  const char* cache;    // the folder it keeps weights in; "": none
  const char* options;  // of the delegate; %s is that folder
  bool fresh;           // without what earlier runs left
};
constexpr Mode kModes[] = {
    {"unshared", "", R"({"xnnpack": {"share_weights": false}})", false},
    {"no cache", "", R"({"xnnpack": {}})", false},
    {"build", ".build/", R"({"xnnpack": {"weight_cache_path": "%s"}})", true},
    {"build, no dedup", ".unshared/", R"({"xnnpack": {"weight_cache_path": "%s", "share_weights": false}})",
     true},
    {"reload", ".build/", R"({"xnnpack": {"weight_cache_path": "%s"}})", false},
};

// One round of one mode. In it, "disk MB" is the size of the mode's cache.
Result<Row> RunOnce(const std::string& name, const fs::path& model, const Mode& mode,
                    const Arguments& arguments) {
  const fs::path cache = mode.cache[0] == '\0' ? "" : arguments.dir / (name + mode.cache);
  if (mode.fresh) fs::remove_all(cache);
  std::string options = mode.options;
  if (const size_t at = options.find("%s"); at != std::string::npos) options.replace(at, 2, cache.string());
  FUSEBOX_ASSIGN(Row row, RunChild(model, options, arguments));
  row["disk MB"] = cache.empty() ? 0 : MegabytesIn(cache);
  return row;
}

std::string UnitOf(std::string_view column) { return std::string(column.substr(column.rfind(' ') + 1)); }

// Writes the metrics of one mode in one round, beside the modes that have no cache.
void WriteMode(const std::string& job, int round, const std::vector<Row>& rows, size_t mode,
               double model_mb) {
  const Row& row = rows[mode];
  for (const auto& [name, column] :
       {std::pair("init", "init ms"), {"first output", "first ms"}, {"peak memory", "peak MB"}}) {
    const Metric metric{"cache", job + kModes[mode].name, name, UnitOf(column)};
    WriteRow(metric, kOurs, round, row.at(column));
    for (const size_t other : {0u, 1u})
      if (other != mode) WriteRow(metric, kModes[other].name, round, rows[other].at(column));
    if (metric.unit == "MB") WriteRow(metric, "model file", round, model_mb);
    if (metric.name == "first output") WriteRow(metric, "steady run", round, row.at("steady ms"));
  }
  for (const auto& [name, column] : {std::pair("open", "open ms"),
                                     {"steady run", "steady ms"},
                                     {"anonymous memory", "anon MB"},
                                     {"packed", "packed MB"},
                                     {"reused", "reused MB"},
                                     {"on disk", "disk MB"}})
    if (row.contains(column))
      WriteRow({"cache", job + kModes[mode].name, name, UnitOf(column)}, kOurs, round, row.at(column));
}

Status Compare(const std::string& name, const Arguments& arguments) {
  const fs::path model = arguments.dir / (name + ".tflite");
  if (!fs::exists(model)) FUSEBOX_TRY(WriteCacheModel(name, arguments.size, model));
  const double model_mb = static_cast<double>(fs::file_size(model)) / (1 << 20);
  const std::string job = name + (arguments.size == Size::kSmall ? " (small), " : ", ");
  for (int round = 0; round < arguments.rounds; ++round) {
    std::vector<Row> rows;
    for (const Mode& mode : kModes) {
      FUSEBOX_ASSIGN(Row row, RunOnce(name, model, mode, arguments));
      rows.push_back(std::move(row));
    }
    for (size_t mode = 0; mode < rows.size(); ++mode) WriteMode(job, round, rows, mode, model_mb);
  }
  for (const Mode& mode : kModes)
    if (mode.cache[0] != '\0') fs::remove_all(arguments.dir / (name + mode.cache));
  return {};
}

int Usage() {
  std::fprintf(stderr, "usage: cache_bench --plugin FOLDER [--dir DIR] [--rounds N] [--small] [MODEL...]\n");
  return 2;
}

int Main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "--child") == 0) return Child(argc, argv);
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small") {
      arguments.size = Size::kSmall;
    } else if (word == "--plugin" && i + 1 < argc) {
      arguments.plugins.push_back(argv[++i]);
    } else if (word == "--dir" && i + 1 < argc) {
      arguments.dir = argv[++i];
    } else if (word == "--rounds" && i + 1 < argc) {
      arguments.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (word.starts_with("-")) {
      return Usage();
    } else {
      arguments.models.push_back(word);
    }
  }
  if (arguments.plugins.empty()) return Usage();
  if (arguments.size == Size::kSmall) arguments.dir += "_small";
  fs::create_directories(arguments.dir);
  if (arguments.models.empty())
    for (const std::string_view name : CacheModelNames()) arguments.models.emplace_back(name);
  for (const std::string& name : arguments.models) {
    if (const Status status = Compare(name, arguments); !status)
      return std::fprintf(stderr, "%s: %s\n", name.c_str(), status.error().message.c_str()), 1;
  }
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main(argc, argv); }
