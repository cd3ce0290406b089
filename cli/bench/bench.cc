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
