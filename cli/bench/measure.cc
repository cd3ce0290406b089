// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>

#include "cli/bench/child.h"
#include "cli/bench/memory.h"

namespace fusebox::cli {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Memory, start, init, peak, cache)

namespace {

using Json = nlohmann::json;

// The measurements of one contestant in one process. Times are in us.
struct Sample {
  std::string delegates, signature;
  int threads = 1;
  double init = 0;
  std::vector<double> warmup;
  Turns turns;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sample, delegates, signature, threads, init, warmup, turns)

struct Samples {
  std::vector<Sample> all;  // by contestant
  Memory memory;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Samples, all, memory)

struct Ready {
  Opened opened;
  std::vector<Tensor> inputs;
  double init = 0;  // us: plugins, model, session and plan
};

double MicrosSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// With its inputs set, which is not in the time: they also are the sizes of what the file leaves open.
Result<Ready> Start(const BenchFlags& flags, const Entry& entry, const SessionOptions& session) {
  const auto start = std::chrono::steady_clock::now();
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(const ModelOptions options, ModelOptionsOf(std::move(registry), entry.delegates));
  Ready out;
  FUSEBOX_ASSIGN(out.opened, Open(entry.model, options, session));
  out.init = MicrosSince(start);
  FUSEBOX_ASSIGN(out.inputs, ReadInputs(flags.inputs, out.opened));
  const auto planning = std::chrono::steady_clock::now();
  FUSEBOX_TRY(out.opened.session->Prepare());
  out.init += MicrosSince(planning);
  FUSEBOX_TRY(SetInputs(*out.opened.session, out.inputs, flags.inputs.seed));
  return out;
}

// The delegates that run a part of the model: "xnnpack"; "none".
std::string DelegatesOf(const Session& session) {
  std::set<std::string> names;
  for (const Placement& row : session.placements())
    if (const size_t end = row.runner.find(" (partition"); end != std::string::npos)
      names.insert(row.runner.substr(0, end));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, "+"));
}

// One pool: the waiting threads of another one would spin on cores that this one needs.
Result<SessionOptions> WithPool(const BenchFlags& flags) {
  SessionOptions out = flags.session;
  FUSEBOX_ASSIGN(out.pool, ThreadPool::Create(out.threads));
  return out;
}

// In this process. `first` is opened first, and has the first turn.
Result<Samples> MeasureHere(const BenchFlags& flags, const std::vector<Entry>& entries, size_t first) {
  Samples out{.all = std::vector<Sample>(entries.size()), .memory = {.start = ResidentBytes()}};
  FUSEBOX_ASSIGN(const SessionOptions session, WithPool(flags));
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::rotate(order, order.begin() + static_cast<ptrdiff_t>(first));
  std::vector<Ready> ready(entries.size());
  for (const size_t who : order) {
    FUSEBOX_ASSIGN(ready[who], Start(flags, entries[who], session));
  }
  out.memory.init = ResidentBytes();
  std::vector<Call> calls;
  for (const size_t who : order) {
    Session& s = *ready[who].opened.session;
    calls.push_back([&s] { return s.Run(); });
    FUSEBOX_ASSIGN(auto warmup, Repeat(calls.back(), flags.warmup));
    out.all[who] = {.delegates = DelegatesOf(s),
                    .signature = s.signature(),
                    .threads = s.threads(),
                    .init = ready[who].init,
                    .warmup = std::move(warmup)};
  }
  std::vector<Turns> turns;
  if (calls.size() == 1) {
    FUSEBOX_ASSIGN(auto times, Repeat(calls[0], flags.runs));
    turns = {{std::move(times)}};
  } else {
    FUSEBOX_ASSIGN(turns, TakeTurns(calls, flags.runs));
  }
  for (size_t i = 0; i < order.size(); ++i) out.all[order[i]].turns = std::move(turns[i]);
  out.memory.peak = PeakResidentBytes();
  out.memory.cache = CachePages();
  return out;
}

// By process. The contestants begin in turn.
Result<std::vector<Samples>> MeasureApart(const BenchFlags& flags, const std::vector<Entry>& entries,
                                          int processes) {
  std::vector<Samples> out;
  for (size_t i = 0; i < static_cast<size_t>(processes); ++i) {
    FUSEBOX_ASSIGN(const std::string text, InChild(i > 0, [&]() -> Result<std::string> {
                     FUSEBOX_ASSIGN(const Samples samples, MeasureHere(flags, entries, i % entries.size()));
                     return Json(samples).dump();
                   }));
    out.push_back(Json::parse(text).get<Samples>());
  }
  return out;
}

// Returns the number of processes. Each has its part of the limits: more measurements are more processes.
int CountProcesses(const BenchFlags& flags) {
  return static_cast<int>(12 * std::clamp(flags.runs.min_seconds, 1.0, 8.0));
}

BenchFlags Share(BenchFlags flags, int processes) {
  for (Limits* limits : {&flags.runs, &flags.warmup}) {
    limits->runs = (limits->runs - 1) / processes + 1;
    limits->min_seconds /= processes;
    limits->max_seconds /= processes;
  }
  return flags;
}

// The first run of each process.
Status MeasureCold(BenchFlags flags, const Entry& entry, Contestant& contestant) {
  if (flags.cold == 0) return {};
  flags.warmup = flags.runs = {.runs = 1, .min_seconds = 0};
  FUSEBOX_ASSIGN(const auto samples, MeasureApart(flags, {entry}, flags.cold));
  std::vector<double> init;
  std::vector<double> first;
  for (const Samples& process : samples) {
    init.push_back(process.all[0].init);
    first.push_back(process.all[0].warmup.front());
  }
  contestant.cold_init = Summarize(init);
  contestant.cold_first = Summarize(first);
  return {};
}

// The median over the rounds: the turns of a round follow each other.
double RatioOf(const Turns& a, const Turns& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(Median(a[i]) / Median(b[i]));
  return Median(ratios);
}

void AddSamples(const std::vector<Samples>& samples, size_t who, Contestant& out) {
  std::vector<double> init;
  std::vector<double> first;
  std::vector<double> warmup;
  std::vector<double> runs;
  for (const Samples& process : samples) {
    const Sample& sample = process.all[who];
    init.push_back(sample.init);
    first.push_back(sample.warmup.front());
    warmup.insert(warmup.end(), sample.warmup.begin(), sample.warmup.end());
    for (const std::vector<double>& turn : sample.turns) runs.insert(runs.end(), turn.begin(), turn.end());
    if (who > 0) out.ratios.push_back(RatioOf(sample.turns, process.all[0].turns));
  }
  const Sample& sample = samples[0].all[who];
  out.delegates = sample.delegates;
  out.signature = sample.signature;
  out.threads = sample.threads;
  out.init = Median(init);
  out.warmup = Summarize(warmup);
  out.warmup.first = Median(first);
  out.runs = Summarize(runs);
  if (who > 0) out.ratio = Estimate(out.ratios);
}

}  // namespace

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

Result<Measured> Measure(const BenchFlags& flags) {
  const std::vector<Entry> entries = Entries(flags);
  Measured out;
  out.contestants.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i)  // first: this process has one thread
    FUSEBOX_TRY(MeasureCold(flags, entries[i], out.contestants[i]));
  std::vector<Samples> samples;
  if (entries.size() == 1) {
    FUSEBOX_ASSIGN(Samples alone, MeasureHere(flags, entries, 0));
    samples.push_back(std::move(alone));
  } else {
    const int processes = CountProcesses(flags);
    FUSEBOX_ASSIGN(samples, MeasureApart(Share(flags, processes), entries, processes));
  }
  out.memory = samples.back().memory;
  for (size_t i = 0; i < entries.size(); ++i) {
    out.contestants[i].model = entries[i].model;
    out.contestants[i].file_bytes = std::filesystem::file_size(entries[i].model);
    AddSamples(samples, i, out.contestants[i]);
  }
  if (!flags.profile) return out;
  FUSEBOX_ASSIGN(const SessionOptions session, WithPool(flags));
  for (const Entry& entry : entries) {  // last: what was measured is without it
    FUSEBOX_ASSIGN(Ready ready, Start(flags, entry, session));
    FUSEBOX_ASSIGN(ModelProfile profile, ProfileModel(ready.opened, session, ready.inputs, flags.runs));
    out.profiles.push_back(std::move(profile));
  }
  return out;
}

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

}  // namespace fusebox::cli
