// SPDX-License-Identifier: Apache-2.0
// Files beside stock TFLite with its XNNPACK delegate. Each is measured in a process of its own, which the peer may take down.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/bench/interleave.h"
#include "tests/bench/net_bench.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
constexpr unsigned kSecondsForOneFile = 120;
constexpr int kThreads[] = {1, 2};

json Failed(const Error& error, const char* who) { return {{who, error.message}}; }

Status Feed(testing::Stock& stock, Session& session) {
  for (int i = 0; i < static_cast<int>(session.inputs().size()); ++i) {
    FUSEBOX_ASSIGN(const auto bytes, session.InputData(i));
    FUSEBOX_ASSIGN(Type type, stock.input_type(i));
    for (int64_t& d : type.shape.dims()) d = std::max<int64_t>(d, 1);
    FUSEBOX_TRY(stock.Resize(i, type.shape));
    FUSEBOX_TRY(stock.SetInput(i, {type, Buffer::Copy(bytes)}));
  }
  return {};
}

// {"ours": ms, "theirs": ms}, or why one of the two does not run.
json Measure(const std::string& path, const NetArguments& arguments, int threads, bool with_peer) {
  auto ours = OpenNet(path, arguments, threads);
  if (!ours) return Failed(ours.error(), "we");
  const auto run = [&] { return (*ours)->Run(); };
  if (const Status ran = run(); !ran) return Failed(ran.error(), "we");
  if (!with_peer) {
    const auto times = Interleave(run, run, arguments.seconds, threads);
    if (!times) return Failed(times.error(), "we");
    return {{"ours", times->a.median}, {"ours_best", times->a.best}};
  }
  auto stock = testing::Stock::WithXnnpack(path, threads);
  if (!stock) return Failed(stock.error(), "peer");
  if (const Status fed = Feed(**stock, **ours); !fed) return Failed(fed.error(), "peer");
  const auto times = Interleave(run, [&] { return (*stock)->Run(); }, arguments.seconds, threads);
  if (!times) return Failed(times.error(), "peer");
  return {{"ours", times->a.median},
          {"ours_best", times->a.best},
          {"theirs", times->b.median},
          {"theirs_best", times->b.best}};
}

json InOwnProcess(const std::string& path, const NetArguments& arguments, int threads, bool with_peer) {
  const auto said =
      InChild([&] { return Measure(path, arguments, threads, with_peer).dump(); }, kSecondsForOneFile);
  return said ? json::parse(*said) : Failed(said.error(), with_peer ? "peer" : "we");
}

// Again without the peer, where that refused or crashed.
json MeasureFile(const std::string& path, const NetArguments& arguments, int threads) {
  json row = InOwnProcess(path, arguments, threads, true);
  if (!row.contains("peer")) return row;
  json alone = InOwnProcess(path, arguments, threads, false);
  alone["peer"] = row["peer"];
  return alone;
}

void Print(const std::string& path, int threads, const json& row) {
  const std::string name = std::filesystem::path(path).filename();
  if (row.contains("we")) {
    std::printf("%-62.62s %d  not run here: %.120s\n", name.c_str(), threads,
                row["we"].get<std::string>().c_str());
  } else if (row.contains("peer")) {
    std::printf("%-62.62s %d %9.3f         -       -       -  peer: %.80s\n", name.c_str(), threads,
                row["ours"].get<double>(), row["peer"].get<std::string>().c_str());
  } else {
    const double ours = row["ours"], theirs = row["theirs"];
    std::printf("%-62.62s %d %9.3f %9.3f %7.3f %7.3f\n", name.c_str(), threads, ours, theirs, ours / theirs,
                row["ours_best"].get<double>() / row["theirs_best"].get<double>());
  }
  std::fflush(stdout);
}

}  // namespace

bool CompareFiles(const NetArguments& arguments) {
  if (!arguments.json)
    std::printf("%-62s %s %9s %9s %7s %7s\n", "medians; ratio, ratio of the best", "t", "ours ms",
                "TFLite ms", "ratio", "best");
  json all = json::array();
  bool good = true;
  for (const int threads : kThreads) {
    std::vector<double> ratios, best;
    for (const std::string& file : arguments.files) {
      json row = MeasureFile(file, arguments, threads);
      good = good && !row.contains("we");
      if (row.contains("theirs")) {
        ratios.push_back(row["ours"].get<double>() / row["theirs"].get<double>());
        best.push_back(row["ours_best"].get<double>() / row["theirs_best"].get<double>());
      }
      if (!arguments.json) Print(file, threads, row);
      row["file"] = file;
      row["threads"] = threads;
      all.push_back(std::move(row));
    }
    if (!arguments.json && !ratios.empty())
      std::printf(
          "%zu files of both, %d threads; ours / TFLite: median %.3f, worst %.3f; best: median %.3f, worst "
          "%.3f\n",
          ratios.size(), threads, Median(ratios), *std::max_element(ratios.begin(), ratios.end()),
          Median(best), *std::max_element(best.begin(), best.end()));
  }
  if (arguments.json) std::printf("%s\n", all.dump(1).c_str());
  return good;
}

}  // namespace fusebox::bench
