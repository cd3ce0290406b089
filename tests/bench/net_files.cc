// SPDX-License-Identifier: Apache-2.0
// Files beside stock TFLite with its XNNPACK delegate. Each is measured in a process of its own, which the
// peer may take down.
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

// Why the peer does not run the file either; null: it does.
json PeerAlone(const std::string& path, int threads) {
  const auto why = InChild(
      [&]() -> std::string {
        const auto stock = testing::Stock::WithXnnpack(path, threads);
        if (!stock) return stock.error().message;
        const Status ran = (*stock)->Run();
        return ran ? "" : ran.error().message;
      },
      kSecondsForOneFile);
  if (!why) return why.error().message;
  return why->empty() ? json() : json(*why);
}

// Again without the peer, where that refused or crashed.
json MeasureFile(const std::string& path, const NetArguments& arguments, int threads) {
  if (arguments.alone) return InOwnProcess(path, arguments, threads, false);
  json row = InOwnProcess(path, arguments, threads, true);
  if (row.contains("we"))
    if (json why = PeerAlone(path, threads); !why.is_null()) row["peer"] = why;
  if (row.contains("we") || !row.contains("peer")) return row;
  json alone = InOwnProcess(path, arguments, threads, false);
  alone["peer"] = row["peer"];
  return alone;
}

// The files without folders and endings; those of the same name with as many folders as tell them apart.
std::vector<std::string> Names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::vector<std::filesystem::path> folders;
  for (const std::string& file : files) {
    names.push_back(std::filesystem::path(file).stem().string());
    folders.push_back(std::filesystem::path(file).parent_path());
  }
  for (bool again = true; again;) {
    again = false;
    const std::vector<std::string> before = names;
    for (size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::count(before, before[i]) < 2 || folders[i].filename().empty()) continue;
      names[i] = folders[i].filename().string() + "/" + names[i];
      folders[i] = folders[i].parent_path();
      again = true;
    }
  }
  return names;
}

// Returns whether it runs here, or neither here nor there.
bool WriteFile(const std::string& job, const json& measured, bool alone) {
  const bool peer_fails = measured.contains("peer");
  if (measured.contains("we")) {
    WriteError("files", job, peer_fails ? "neither" : kOurs, measured["we"].get<std::string>());
    return peer_fails;
  }
  if (peer_fails) WriteError("files", job, kPeer, measured["peer"].get<std::string>());
  const Metric time{"files", job, "run", "ms"};
  int number = 0;
  for (const json& round : measured["rounds"]) {
    WriteRow(time, kOurs, number, round[0]);
    if (!peer_fails && !alone) WriteRow(time, kPeer, number, round[1]);
    ++number;
  }
  return true;
}

}  // namespace

bool CompareFiles(const NetArguments& arguments) {
  bool good = true;
  const auto names = Names(arguments.files);
  for (const int threads : kThreads) {
    if (arguments.threads != 0 && threads != arguments.threads) continue;
    if (arguments.alone && threads > 1) break;
    for (size_t i = 0; i < names.size(); ++i) {
      const json measured = MeasureFile(arguments.files[i], arguments, threads);
      good = WriteFile(names[i] + OnThreads(threads), measured, arguments.alone) && good;
    }
  }
  return good;
}

}  // namespace fusebox::bench
