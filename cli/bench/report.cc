// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Wider intervals tell nothing; times that spread more were disturbed.
constexpr double kWide = 0.1;
constexpr double kSpread = 1.25;

double Megabytes(size_t bytes) { return static_cast<double>(bytes) / 1048576; }

// As benchmark_model prints times: whole microseconds, means with six digits.
std::string CountLine(const Summary& s) {
  if (s.count == 1) return fmt::format("count=1 curr={:.0f}\n", s.last);
  return fmt::format("count={} first={:.0f} curr={:.0f} min={:.0f} max={:.0f} avg={:.6g} std={:.0f}\n",
                     s.count, s.first, s.last, s.least, s.most, s.mean, s.deviation);
}

std::string MemoryLines(const Memory& memory) {
  const auto delta = [&](size_t bytes) { return Megabytes(bytes - std::min(bytes, memory.start)); };
  return fmt::format(
      "Memory footprint delta from the start of the tool (MB): init={:.6g} overall={:.6g}\n"
      "Peak memory (MB): {:.1f}, of which {:.1f} are pages of weight caches, which processes share\n",
      delta(memory.init), delta(memory.peak), Megabytes(memory.peak), Megabytes(memory.cache));
}

std::string ColdLine(const Contestant& c) {
  if (!c.cold_init) return {};
  return fmt::format("Cold start in us, median of {} processes: Init: {:.0f}, First inference: {:.0f}\n",
                     c.cold_init->count, c.cold_init->p50, c.cold_first->p50);
}

OrderedJson ToJson(const Summary& s) {
  return {{"count", s.count}, {"first_us", s.first},   {"min_us", s.least}, {"max_us", s.most},
          {"avg_us", s.mean}, {"std_us", s.deviation}, {"p50_us", s.p50},   {"p90_us", s.p90},
          {"p99_us", s.p99},  {"p99_9_us", s.p999}};
}

}  // namespace

std::string Head(const Contestant& c) {
  return fmt::format(
      "Graph: [{}]\nNum threads: [{}]\nDelegates: [{}]\nThe input model file size (MB): {:.6g}\n"
      "Initialized session in {:.6g}ms.\n",
      c.model, c.threads, c.delegates, static_cast<double>(c.file_bytes) / 1e6, c.init / 1000);
}

std::string RunLines(const Limits& limits, const Summary& summary) {
  return fmt::format(
      "Running benchmark for at least {} iterations and at least {:.6g} seconds but terminate if exceeding "
      "{:.6g} seconds.\n{}\n",
      limits.runs, limits.min_seconds, limits.max_seconds, CountLine(summary));
}

std::string Verdict(const Ratio& ratio) {
  const bool noisy = ratio.high - ratio.low > kWide * ratio.value;
  if (ratio.low > 1) return noisy ? "slower, on a noisy machine" : "slower";
  if (ratio.high < 1) return noisy ? "faster, on a noisy machine" : "faster";
  return noisy ? "the machine is too noisy to tell" : "no difference seen";
}

std::string ToText(const Contestant& c, const Memory& memory) {
  std::string out = fmt::format(
      "Inference timings in us: Init: {:.0f}, First inference: {:.0f}, Warmup (avg): {:.6g}, Inference "
      "(avg): "
      "{:.6g}\n",
      c.init, c.warmup.first, c.warmup.mean, c.runs.mean);
  out += fmt::format("Percentiles in us: p50: {:.1f}, p90: {:.1f}, p99: {:.1f}, p99.9: {:.1f}\n", c.runs.p50,
                     c.runs.p90, c.runs.p99, c.runs.p999);
  if (c.runs.p90 > kSpread * c.runs.p50)
    out += fmt::format("Noisy: a tenth of the runs took more than {:.2f} times the median\n",
                       c.runs.p90 / c.runs.p50);
  return out + ColdLine(c) + MemoryLines(memory);
}

std::string ToTable(const std::vector<Contestant>& all, const Memory& memory) {
  Table table({"model", "delegates", "init us", "first us", "runs", "p50 us", "p90 us", "avg us", "ratio",
               "99 % interval", "beside the first"});
  for (const Contestant& c : all) {
    const bool compared = c.ratio.has_value();
    table.Row({std::filesystem::path(c.model).filename(), c.delegates, fmt::format("{:.0f}", c.init),
               fmt::format("{:.0f}", c.warmup.first), std::to_string(c.runs.count),
               fmt::format("{:.1f}", c.runs.p50), fmt::format("{:.1f}", c.runs.p90),
               fmt::format("{:.1f}", c.runs.mean), compared ? fmt::format("{:.3f}", c.ratio->value) : "1",
               compared ? fmt::format("{:.3f} to {:.3f}", c.ratio->low, c.ratio->high) : "-",
               compared ? Verdict(*c.ratio) : "-"});
  }
  std::string out = table.Text();
  for (const Contestant& c : all)
    if (const std::string cold = ColdLine(c); !cold.empty()) out += c.Name() + ": " + cold;
  return out + MemoryLines(memory);
}

std::string ToCsv(const std::vector<Contestant>& all, const Memory& memory) {
  const auto quoted = [](std::string text) {
    for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    return '"' + text + '"';
  };
  std::string out =
      "model,delegates,threads,init_us,first_us,warmup_avg_us,runs,avg_us,std_us,min_us,p50_us,p90_us,p99_us,"
      "p99_9_us,max_us,ratio,ratio_low,ratio_high,peak_mb,cache_mb\n";
  for (const Contestant& c : all) {
    const Ratio ratio = c.ratio.value_or(Ratio{});
    out += fmt::format(
        "{},{},{},{:.1f},{:.1f},{:.2f},{},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},",
        quoted(c.model), quoted(c.delegates), c.threads, c.init, c.warmup.first, c.warmup.mean, c.runs.count,
        c.runs.mean, c.runs.deviation, c.runs.least, c.runs.p50, c.runs.p90, c.runs.p99, c.runs.p999,
        c.runs.most);
    out += fmt::format("{:.4f},{:.4f},{:.4f},{:.1f},{:.1f}\n", ratio.value, ratio.low, ratio.high,
                       Megabytes(memory.peak), Megabytes(memory.cache));
  }
  return out;
}

OrderedJson ToJson(const Contestant& c) {
  OrderedJson out = {{"model", c.model},           {"delegates", c.delegates},   {"signature", c.signature},
                     {"threads", c.threads},       {"file_bytes", c.file_bytes}, {"init_us", c.init},
                     {"first_us", c.warmup.first}, {"warmup", ToJson(c.warmup)}, {"runs", ToJson(c.runs)}};
  if (c.cold_init) out["cold"] = {{"init", ToJson(*c.cold_init)}, {"first", ToJson(*c.cold_first)}};
  if (c.ratio)
    out["ratio"] = {{"value", c.ratio->value},
                    {"low", c.ratio->low},
                    {"high", c.ratio->high},
                    {"verdict", Verdict(*c.ratio)},
                    {"processes", c.ratios}};
  return out;
}

OrderedJson ToJson(const Memory& m) {
  return {{"start_bytes", m.start}, {"init_bytes", m.init}, {"peak_bytes", m.peak}, {"cache_bytes", m.cache}};
}

}  // namespace fusebox::cli
