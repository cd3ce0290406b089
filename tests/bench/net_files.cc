// SPDX-License-Identifier: Apache-2.0
// Files beside stock TFLite with its XNNPACK delegate. Each is measured in a process of its own, which the peer may take down.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/bench/interleave.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
constexpr unsigned kSecondsForOneFile = 120;
constexpr int kThreads[] = {1, 2};
constexpr char kPeer[] = "TFLite + XNNPACK";

json Rounds(const std::vector<Round>& rounds) {
  json all = json::array();
  for (const Round& round : rounds) all.push_back({round.a, round.b});
  return {{"rounds", std::move(all)}};
}

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

// {"rounds": [[ours, theirs] in ms...]}, or why one of the two does not run.
json Measure(const std::string& path, const NetArguments& arguments, int threads, bool with_peer) {
  auto ours = OpenNet(path, arguments, threads);
  if (!ours) return Failed(ours.error(), "we");
  const auto run = [&] { return (*ours)->Run(); };
  if (const Status ran = run(); !ran) return Failed(ran.error(), "we");
  if (!with_peer) {
    const auto rounds = Interleave(run, run, arguments.seconds, threads);
    return rounds ? Rounds(*rounds) : Failed(rounds.error(), "we");
  }
  auto stock = testing::Stock::WithXnnpack(path, threads);
  if (!stock) return Failed(stock.error(), "peer");
  if (const Status fed = Feed(**stock, **ours); !fed) return Failed(fed.error(), "peer");
  const auto rounds = Interleave(run, [&] { return (*stock)->Run(); }, arguments.seconds, threads);
  return rounds ? Rounds(*rounds) : Failed(rounds.error(), "peer");
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

// Returns whether it runs here.
bool WriteFile(const std::string& path, int threads, const json& measured) {
  const std::string job = std::filesystem::path(path).stem().string() + OnThreads(threads);
  for (const auto& [key, who] : {std::pair("we", kOurs), {"peer", kPeer}})
    if (measured.contains(key)) WriteError("files", job, who, measured[key].get<std::string>());
  if (measured.contains("we")) return false;
  const Metric time{"files", job, "run", "ms"};
  int number = 0;
  for (const json& round : measured["rounds"]) {
    WriteRow(time, kOurs, number, round[0]);
    if (!measured.contains("peer")) WriteRow(time, kPeer, number, round[1]);
    ++number;
  }
  return true;
}

}  // namespace

bool CompareFiles(const NetArguments& arguments) {
  bool good = true;
  for (const int threads : kThreads)
    for (const std::string& file : arguments.files)
      good = WriteFile(file, threads, MeasureFile(file, arguments, threads)) && good;
  return good;
}

}  // namespace fusebox::bench
