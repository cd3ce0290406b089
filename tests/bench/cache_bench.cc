// SPDX-License-Identifier: Apache-2.0
// What the weight cache brings: every model of cache_models.h without a cache, while the cache is built, and from the cache.
//
//   cache_bench --plugin FOLDER [--dir DIR] [--rounds N] [--small] [MODEL...]
//
// Each run is a process of its own, with the plugin loaded and the model's pages in memory. Medians over the rounds; peak memory is the
// largest. Without a cache, the sessions and signatures of a model still share packed weights in memory. "init" is Model::Open and Session with its first plan; "first" goes from Open to the first output (llm: 64 tokens of
// prefill, then one of decode); "steady" is one more run (llm: of decode).
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
#include <sstream>

#include "host/session.h"
#include "tests/bench/cache_models.h"

namespace fusebox::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Row = std::map<std::string, double>;  // by column

double Millis(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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

Result<Row> Measure(const std::string& model_path, const std::string& options,
                    const std::vector<std::string>& plugins) {
  Config config;
  config.search_default_path = false;
  config.plugins = plugins;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  FUSEBOX_TRY(registry->LoadAll());
  const bool llm = model_path.find("llm") != std::string::npos;
  Row row;
  const auto start = Clock::now();
  FUSEBOX_ASSIGN(const auto model,
                 Model::Open(model_path, {.registry = registry, .delegate_options = options}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model, {.signature = llm ? "prefill" : ""}));
  FUSEBOX_TRY(session->Prepare());
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
  for (const std::string& notice : model->notices()) std::fprintf(stderr, "%s\n", notice.c_str());
  return row;
}

int Child(int argc, char** argv) {
  const auto row = Measure(argv[2], argv[3], std::vector<std::string>(argv + 4, argv + argc));
  if (!row) return std::fprintf(stderr, "%s\n", row.error().message.c_str()), 1;
  std::printf("%s\n", nlohmann::json(*row).dump().c_str());
  return 0;
}

// The parent: runs processes, prints tables.

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
  const char* options;  // of the delegate; %s is the cache's folder
  bool fresh;           // without what earlier runs left
};
constexpr Mode kModes[] = {
    {"no cache", R"({"xnnpack": {"weight_cache_path": ""}})", true},
    {"build", R"({"xnnpack": {"weight_cache_path": "%s"}})", true},
    {"reload", R"({"xnnpack": {"weight_cache_path": "%s"}})", false},
};

Status Compare(const std::string& name, const Arguments& arguments) {
  const fs::path model = arguments.dir / (name + ".tflite"), cache = arguments.dir / (name + ".cache/");
  if (!fs::exists(model)) FUSEBOX_TRY(WriteCacheModel(name, arguments.size, model));
  std::printf("\n%s, %.0f MB\n%-16s", name.c_str(), static_cast<double>(fs::file_size(model)) / (1 << 20),
              "");
  for (const char* column : {"init ms", "first ms", "steady ms", "peak MB", "anon MB", "disk MB"})
    std::printf(" %10s", column);
  std::printf("   init   first    peak, of no cache\n");
  Row base;
  for (const Mode& mode : kModes) {
    std::string options = mode.options;
    if (const size_t at = options.find("%s"); at != std::string::npos) options.replace(at, 2, cache.string());
    std::map<std::string, std::vector<double>> columns;
    if (!mode.fresh) {  // what the mode before left may be of another kind
      fs::remove_all(cache);
      FUSEBOX_TRY(RunChild(model, options, arguments));
    }
    for (int round = 0; round < arguments.rounds; ++round) {
      if (mode.fresh) fs::remove_all(cache);
      FUSEBOX_ASSIGN(const Row row, RunChild(model, options, arguments));
      for (const auto& [column, value] : row) columns[column].push_back(value);
    }
    Row row;
    for (const auto& [column, values] : columns)
      row[column] = column.ends_with("MB") ? *std::max_element(values.begin(), values.end()) : Median(values);
    if (base.empty()) base = row;
    std::printf("%-16s", mode.name);
    for (const char* column : {"init ms", "first ms", "steady ms", "peak MB", "anon MB"})
      std::printf(" %10.2f", row[column]);
    std::printf(" %10.1f", MegabytesIn(cache));
    for (const char* column : {"init ms", "first ms", "peak MB"})
      std::printf(" %7.4f", row[column] / base[column]);
    std::printf("\n");
    std::fflush(stdout);
  }
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
