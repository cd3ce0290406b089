// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/print.h"
#include "cli/bench/measure.h"

namespace fusebox::cli {
namespace {

constexpr const char* kBenchFooter =
    R"(The lines are those of TFLite's benchmark_model, whose flags have the same names here. With --vs or several models, all
take turns in each of 12 processes per --min-secs, which share the limits; the ratio of their times has a 99 % interval.

Examples:
  fusebox bench model.tflite
  fusebox bench model.tflite --num_threads 4 --num_runs 200 --pin 0,1,2,3
  fusebox bench model.tflite --vs none                     # kernels beside the default delegates
  fusebox bench float.tflite int8.tflite --json
  fusebox bench model.tflite --profile
  fusebox bench model.tflite --weight-cache cache/ --cold 5)";

struct BenchFlags {
  std::vector<std::string> models, versus;
  SessionOptions session;
  InputFlags inputs;
  PluginFlags plugins;
  DelegateFlags delegates;
  Limits runs, warmup{.runs = 1, .min_seconds = 0.5};
  std::vector<size_t> cpus;
  int cold = 0;
  std::string trace;
  bool json = false, csv = false, profile = false;
};

struct Entry {
  std::string model;
  DelegateFlags delegates;
};

// One per model, and one per --vs: another model, or the first one with another delegate.
std::vector<Entry> Entries(const BenchFlags& flags) {
  std::vector<Entry> out;
  for (const std::string& model : flags.models) out.push_back({model, flags.delegates});
  for (const std::string& what : flags.versus) {
    Entry entry{what, flags.delegates};
    if (!what.ends_with(".tflite") && !std::filesystem::exists(what)) {
      entry.model = out.front().model;
      entry.delegates.delegates = {what};
    }
    out.push_back(std::move(entry));
  }
  return out;
}

double MicrosSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

struct Ready {
  Opened opened;
  std::vector<Tensor> inputs;
  double init;  // us: plugins, model, session and plan
};

// With its inputs set, which is not in the time: they also are the sizes of what the file leaves open.
Result<Ready> Start(const BenchFlags& flags, const Entry& entry, const SessionOptions& session) {
  const auto start = std::chrono::steady_clock::now();
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(const ModelOptions options, ModelOptionsOf(std::move(registry), entry.delegates));
  Ready out;
  FUSEBOX_ASSIGN(out.opened, Open(entry.model, options, session));
  FUSEBOX_TRY(ResizeInputs(out.opened, flags.inputs.shapes));
  out.init = MicrosSince(start);
  FUSEBOX_ASSIGN(out.inputs, ReadInputs(flags.inputs, out.opened.ports.inputs).At(entry.model));
  FUSEBOX_TRY(SetInputs(*out.opened.session, out.inputs));
  const auto planning = std::chrono::steady_clock::now();
  FUSEBOX_TRY(out.opened.session->Prepare());
  out.init += MicrosSince(planning);
  return out;
}

Status MeasureCold(const BenchFlags& flags, const Entry& entry, Contestant& contestant) {
  std::vector<double> init, first;
  for (int i = 0; i < flags.cold; ++i) {
    FUSEBOX_ASSIGN(const auto times, InProcessOfItsOwn([&]() -> Result<std::vector<double>> {
                     FUSEBOX_ASSIGN(const Ready ready, Start(flags, entry, flags.session));
                     const auto start = std::chrono::steady_clock::now();
                     FUSEBOX_TRY(ready.opened.session->Run());
                     return std::vector{ready.init, MicrosSince(start)};
                   }));
    init.push_back(times[0]);
    first.push_back(times[1]);
  }
  if (init.empty()) return {};
  contestant.cold_init = Summarize(init);
  contestant.cold_first = Summarize(first);
  return {};
}

// The delegates that run a part of the model: "xnnpack"; "none".
std::string DelegatesOf(const Session& session) {
  std::set<std::string> names;
  for (const Placement& row : session.placements())
    if (const size_t end = row.who.find(" (partition"); end != std::string::npos)
      names.insert(row.who.substr(0, end));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, "+"));
}

// Summarizes all calls of each contestant's turns, and compares the medians of its turns with the medians of
// the first contestant's turns.
void SetTimes(const std::vector<Turns>& turns, std::vector<Contestant>& contestants) {
  std::vector<std::vector<double>> medians(turns.size());
  for (size_t i = 0; i < turns.size(); ++i) {
    std::vector<double> all;
    for (const std::vector<double>& turn : turns[i]) {
      medians[i].push_back(Median(turn));
      all.insert(all.end(), turn.begin(), turn.end());
    }
    contestants[i].runs = Summarize(all);
    if (i > 0) contestants[i].ratio = RatioOfMedians(medians[i], medians[0]);
  }
}

struct Measured {
  std::vector<Contestant> contestants;
  std::vector<ModelProfile> profiles;  // by contestant; empty: not wanted
  Memory memory;
};

Result<Measured> Measure(const BenchFlags& flags) {
  const std::vector<Entry> entries = Entries(flags);
  Measured out;
  out.contestants.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i)  // first: this process has one thread
    FUSEBOX_TRY(MeasureCold(flags, entries[i], out.contestants[i]));
  out.memory.start = ResidentBytes();
  // One pool: the waiting threads of another one would spin on cores that this one needs.
  SessionOptions session = flags.session;
  FUSEBOX_ASSIGN(session.pool, ThreadPool::Create(session.threads));
  std::vector<Ready> ready;
  for (const Entry& entry : entries) {
    FUSEBOX_ASSIGN(Ready one, Start(flags, entry, session));
    ready.push_back(std::move(one));
  }
  out.memory.init = ResidentBytes();
  std::vector<Call> calls;
  for (size_t i = 0; i < entries.size(); ++i) {
    Contestant& c = out.contestants[i];
    Session& s = *ready[i].opened.session;
    calls.push_back([&s] { return s.Run(); });
    FUSEBOX_ASSIGN(const auto times, Repeat(calls.back(), flags.warmup));
    c.warmup = Summarize(times);
    c.model = entries[i].model;
    c.delegates = DelegatesOf(s);
    c.signature = s.signature();
    c.threads = s.threads();
    c.file_bytes = std::filesystem::file_size(c.model);
    c.init = ready[i].init;
  }
  if (calls.size() == 1) {
    FUSEBOX_ASSIGN(const auto times, Repeat(calls[0], flags.runs));
    out.contestants[0].runs = Summarize(times);
  } else {
    FUSEBOX_ASSIGN(const auto turns, TakeTurns(calls, flags.runs));
    SetTimes(turns, out.contestants);
  }
  out.memory.peak = PeakResidentBytes();
  out.memory.cache = CachePages();
  for (size_t i = 0; flags.profile && i < ready.size(); ++i) {  // last: what was measured is without it
    FUSEBOX_ASSIGN(ModelProfile profile, ProfileModel(ready[i].opened, session, ready[i].inputs, flags.runs));
    out.profiles.push_back(std::move(profile));
  }
  return out;
}

// Opens and runs each model once more.
Status TraceModels(const BenchFlags& flags, Trace& trace) {
  const Trace::Recording recording(trace);
  for (const Entry& entry : Entries(flags)) {
    trace.EnterProcess(entry.model);
    FUSEBOX_ASSIGN(const Ready ready, Start(flags, entry, flags.session));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < flags.runs.runs && MicrosSince(start) < flags.runs.max_seconds * 1e6; ++i)
      FUSEBOX_TRY(ready.opened.session->Run());
  }
  return {};
}

Status Pin(const std::vector<size_t>& cpus) {
  if (cpus.empty()) return {};
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const size_t cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return Invalid(
      fmt::format("--pin {}: none of these CPUs can be used by this process", fmt::join(cpus, ",")));
}

void PrintText(const BenchFlags& flags, const Measured& measured) {
  const std::vector<Contestant>& all = measured.contestants;
  if (all.size() == 1) {
    Print(Head(all[0]) + RunLines(flags.warmup, all[0].warmup) + RunLines(flags.runs, all[0].runs) +
          ToText(all[0], measured.memory));
  } else {
    Print(ToTable(all, measured.memory));
  }
  for (size_t i = 0; i < measured.profiles.size(); ++i)
    Print(fmt::format("\nOperator-wise Profiling Info of {}:\n", all[i].Name()) +
          ToText(measured.profiles[i]));
}

nlohmann::ordered_json Document(const Measured& measured) {
  nlohmann::ordered_json out = {{"contestants", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < measured.contestants.size(); ++i) {
    out["contestants"].push_back(ToJson(measured.contestants[i]));
    if (!measured.profiles.empty()) out["contestants"].back()["profile"] = ToJson(measured.profiles[i]);
  }
  out["memory"] = ToJson(measured.memory);
  return out;
}

Result<std::optional<AtomicFile>> BeginTrace(const BenchFlags& flags) {
  if (flags.trace.empty()) return std::nullopt;
  std::vector<std::string> models;
  for (const Entry& entry : Entries(flags)) models.push_back(entry.model);
  FUSEBOX_TRY(RequireTraceApart(flags.trace, models, {}));
  FUSEBOX_ASSIGN(AtomicFile file, AtomicFile::Create(flags.trace));
  return std::optional(std::move(file));
}

Result<Exit> RunBench(const BenchFlags& flags) {
  FUSEBOX_TRY(Pin(flags.cpus));  // first: the pool counts the cores once
  FUSEBOX_ASSIGN(std::optional<AtomicFile> file, BeginTrace(flags));
  FUSEBOX_ASSIGN(const Measured measured, Measure(flags));
  if (file) {
    Trace trace;
    FUSEBOX_TRY(TraceModels(flags, trace));
    FUSEBOX_TRY(Commit(trace, *file, flags.trace));
  }
  if (flags.csv) {
    Print(ToCsv(measured.contestants, measured.memory));
  } else if (flags.json) {
    PrintDocument(Document(measured));
  } else {
    PrintText(flags, measured);
  }
  return Exit::kDone;
}

void AddLimits(CLI::App& app, BenchFlags& flags) {
  const auto seconds = [&](const char* names, double& value, const char* help) {
    app.add_option(names, value, help)->type_name("SECS")->check(CLI::Range(0.0, 1e6))->capture_default_str();
  };
  const auto count = [&](const char* names, int& value, const char* help) {
    app.add_option(names, value, help)
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000))
        ->capture_default_str();
  };
  count("--num-runs,--num_runs", flags.runs.runs, "Least number of measured runs");
  count("--warmup-runs,--warmup_runs", flags.warmup.runs, "Least number of runs before");
  seconds("--min-secs,--min_secs", flags.runs.min_seconds, "Least time of the measured runs of one model");
  seconds("--max-secs,--max_secs", flags.runs.max_seconds, "Most time, also if that is fewer runs");
  seconds("--warmup-min-secs,--warmup_min_secs", flags.warmup.min_seconds, "Least time of the runs before");
  seconds("--run-delay,--run_delay", flags.runs.delay, "Pause before each measured run");
  app.add_option("--threads,--num_threads,--num-threads", flags.session.threads,
                 "Threads per run, at most one per available core; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--pin", flags.cpus, "Run on these CPUs only: 0,1")
      ->type_name("CPU,...")
      ->delimiter(',')
      ->check(CLI::Range(0, CPU_SETSIZE - 1));
  app.add_option("--cold", flags.cold, "Also start N processes that open each model and run it once")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
}

}  // namespace

void AddBench(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("bench", "Measure the latency and memory of .tflite files");
  auto flags = std::make_shared<BenchFlags>();
  app->add_option("model,--graph", flags->models, "The .tflite files; the ratios are to the first one")
      ->type_name("MODEL")
      ->required();
  app->add_option(
         "--vs", flags->versus,
         "Also measure another model, or the first model with another delegate: a FILE.tflite, none, "
         "NAME or NAME:{JSON} (repeatable)")
      ->type_name("WHAT")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty);
  app->add_option("--signature", flags->session.signature,
                  "Signature to run; default: the first one in the file")
      ->type_name("KEY")
      ->check(CheckNotEmpty);
  AddInputFlags(*app, flags->inputs);
  AddMemoryLimit(*app, flags->session);
  AddLimits(*app, *flags);
  AddPluginFlags(*app, flags->plugins);
  AddDelegateFlags(*app, flags->delegates);
  CLI::Option* json = app->add_flag("--json", flags->json, kJsonHelp);
  app->add_flag("--csv", flags->csv, "Print a line of CSV per model")->excludes(json);
  app->add_flag("--profile,--enable_op_profiling", flags->profile,
                "Also print the time of each node, in runs of their own, beside what this machine permits");
  AddTraceFlag(*app, flags->trace,
               "Also write what happens when, for Perfetto, chrome://tracing or speedscope: opens each model "
               "once more and runs "
               "it --num-runs times");
  app->footer(kBenchFooter);
  app->callback([flags, &action] { action = [flags] { return RunBench(*flags); }; });
}

}  // namespace fusebox::cli
