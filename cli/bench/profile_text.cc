// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/bench/profile.h"

namespace fusebox::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kMega = 1e6;

std::string Title(const char* text) {
  return fmt::format("============================== {} ==============================\n", text);
}

// "-" if unknown.
std::string OrDash(double value, const char* form = "{:.3f}") {
  return value > 0 ? fmt::format(fmt::runtime(form), value) : "-";
}

double Share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string NodeHead() {
  return fmt::format(
      "\t{:>36}\t{:>9}\t{:>9}\t{:>8}\t{:>8}\t{:>10}\t{:>9}\t{:>9}\t{:>9}\t{:>9}\t{:>8}\t{:>9}\t{}\t{}\n",
      "[node type]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]", "[MB]", "[MFLOP]",
      "[GFLOP/s]", "[of peak]", "[est. ms]", "[Name]", "[run by]");
}

// Kernels and delegates allocate nothing while they run, so [mem KB] is 0.
std::string NodeLine(const ProfileRow& row, double cumulative, double total) {
  const double seconds = row.average / 1000;
  return fmt::format(
      "\t{:>36}\t{:>9.3f}\t{:>9.3f}\t{:>7.3f}%\t{:>8}\t{:>10.3f}\t{:>9.6g}\t{:>9}\t{:>9}\t{:>9}\t{:>8}\t{:>9}"
      "\t"
      "{}\t{}\n",
      (row.inside ? "> " : "") + row.type, row.first, row.average, Share(row.average, total),
      row.inside ? "" : fmt::format("{:.3f}%", Share(cumulative, total)), 0.0, row.calls,
      OrDash(row.bytes / kMega), OrDash(row.flops / kMega),
      seconds > 0 ? OrDash(row.flops * row.calls / seconds / 1e9, "{:.1f}") : "-",
      row.of_peak > 0 ? fmt::format("{:.0f}%", 100 * row.of_peak) : "-", OrDash(row.estimate * row.calls),
      row.name, row.runner);
}

std::string NodeTable(const char* title, const std::vector<ProfileRow>& rows, double total) {
  std::string out = Title(title) + NodeHead();
  double cumulative = 0;
  for (const ProfileRow& row : rows) {
    if (!row.inside) cumulative += row.average;
    out += NodeLine(row, cumulative, total);
  }
  return out + "\n";
}

constexpr size_t kTop = 10;

std::vector<ProfileRow> Slowest(std::vector<ProfileRow> rows) {
  std::ranges::stable_sort(rows, std::greater(), &ProfileRow::average);
  if (rows.size() > kTop) rows.resize(kTop);
  return rows;
}

struct Kind {
  size_t count = 0;
  double average = 0;
  double calls = 0;
};

// The operators of XNNPACK have numbers.
std::string KindOf(const ProfileRow& row) {
  const size_t name = row.type.find_first_not_of("0123456789");
  return row.span && name != std::string::npos && row.type[name] == ' ' ? row.type.substr(name + 1)
                                                                        : row.type;
}

// A row with spans counts as these, and as what they leave of it.
std::map<std::string, Kind> Kinds(const std::vector<ProfileRow>& rows) {
  std::map<std::string, Kind> kinds;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].inside) continue;
    double left = rows[i].average;
    for (size_t s = i + 1; s < rows.size() && rows[s].span; ++s) {
      Kind& kind = kinds[KindOf(rows[s])];
      ++kind.count;
      kind.average += rows[s].average;
      kind.calls += rows[s].calls;
      left -= rows[s].average;
    }
    Kind& kind = kinds[rows[i].type];
    ++kind.count;
    kind.average += std::max(left, 0.0);
    kind.calls += rows[i].calls;
  }
  return kinds;
}

std::string KindTable(const ModelProfile& profile) {
  const std::map<std::string, Kind> kinds = Kinds(profile.rows);
  std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(), kinds.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& kind) { return kind.second.average; });
  std::string out = Title("Summary by node type") +
                    fmt::format("\t{:>36}\t{:>9}\t{:>9}\t{:>8}\t{:>8}\t{:>10}\t{:>9}\n", "[Node type]",
                                "[count]", "[avg ms]", "[avg %]", "[cdf %]", "[mem KB]", "[times called]");
  double cumulative = 0;
  for (const auto& [type, kind] : sorted) {
    cumulative += kind.average;
    out += fmt::format("\t{:>36}\t{:>9}\t{:>9.3f}\t{:>7.3f}%\t{:>7.3f}%\t{:>10.3f}\t{:>9.6g}\n", type,
                       kind.count, kind.average, Share(kind.average, profile.total),
                       Share(cumulative, profile.total), 0.0, kind.calls);
  }
  return out + "\n";
}

}  // namespace

std::string ToText(const ModelProfile& profile) {
  const size_t executed = static_cast<size_t>(
      std::ranges::count_if(profile.rows, [](const ProfileRow& row) { return !row.inside; }));
  return NodeTable("Run Order", profile.rows, profile.total) +
         NodeTable("Top by Computation Time", Slowest(profile.rows), profile.total) +
         fmt::format("Number of nodes executed: {}\n", executed) + KindTable(profile) +
         fmt::format(
             "Timings (ms): count={} nodes={:.3f} run={:.3f} ({:.1f} % in nodes)\n"
             "Peak of this machine: {:.1f} GFLOP/s in f32, {:.1f} GB/s from caches, {:.1f} GB/s from "
             "memory\n",
             profile.runs, profile.total, profile.run, Share(profile.total, profile.run),
             profile.peak.flops / 1e9, profile.peak.cached / 1e9, profile.peak.memory / 1e9);
}

OrderedJson ToJson(const ModelProfile& profile) {
  OrderedJson rows = OrderedJson::array();
  for (const ProfileRow& row : profile.rows) {
    rows.push_back({{"type", row.type},
                    {"name", row.name},
                    {"runner", row.runner},
                    {"inside", row.inside},
                    {"first_ms", row.first},
                    {"avg_ms", row.average},
                    {"calls", row.calls},
                    {"bytes", row.bytes},
                    {"flops", row.flops},
                    {"of_peak", row.of_peak},
                    {"estimate_ms", row.estimate}});
    if (!row.span) rows.back().update({{"function", row.function}, {"node", row.node}, {"nodes", row.nodes}});
  }
  return {{"runs", profile.runs},
          {"run_ms", profile.run},
          {"nodes_ms", profile.total},
          {"peak",
           {{"flops", profile.peak.flops},
            {"cached_bytes", profile.peak.cached},
            {"memory_bytes", profile.peak.memory}}},
          {"rows", std::move(rows)}};
}

}  // namespace fusebox::cli
