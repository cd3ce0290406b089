// SPDX-License-Identifier: Apache-2.0
// Files beside each peer, which runs them with its own delegate, or beside stock TFLite without a delegate.
// Each pair is measured in a separate process, which the peer may take down.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/bench/interleave.h"
#include "tests/bench/names.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/net_peers.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
constexpr unsigned kSecondsForOneFile = 120;
constexpr int kThreads[] = {1, 2};
constexpr double kLeastTime = 0.05;  // ms: files that take less are not in the summary of kernels

json Rounds(const std::vector<Round>& rounds) {
  json all = json::array();
  for (const Round& round : rounds) all.push_back({round.a, round.b});
  return {{"rounds", std::move(all)}};
}

json Failed(const Error& error, const char* who) { return {{who, error.message}}; }

// {"rounds": [[ours, theirs] in ms...]}, or why one of the two does not run, or why their outputs differ.
json Measure(const std::string& path, const NetArguments& arguments, int threads, const PeerKind* kind) {
  auto ours = OpenNet(path, arguments, threads);
  if (!ours) return Failed(ours.error(), "we");
  const auto run = [&] { return (*ours)->Run(); };
  if (const Status ran = run(); !ran) return Failed(ran.error(), "we");
  if (!kind) {
    const auto rounds = Interleave(run, run, arguments.seconds, threads);
    return rounds ? Rounds(*rounds) : Failed(rounds.error(), "we");
  }
  auto peer = kind->open(path, threads);
  if (!peer) return Failed(peer.error(), "peer");
  if (const Status fed = (*peer)->Feed(**ours); !fed) return Failed(fed.error(), "peer");
  const auto rounds = Interleave(run, [&] { return (*peer)->Run(); }, arguments.seconds, threads);
  if (!rounds) return Failed(rounds.error(), "peer");
  if (const Status same = (*peer)->Compare(**ours); !same) return Failed(same.error(), "peer");
  return Rounds(*rounds);
}

json InOwnProcess(const std::string& path, const NetArguments& arguments, int threads, const PeerKind* kind) {
  const auto said =
      InChild([&] { return Measure(path, arguments, threads, kind).dump(); }, kSecondsForOneFile);
  return said ? json::parse(*said) : Failed(said.error(), kind ? "peer" : "we");
}

// Why the peer does not run the file either; null: it does.
json PeerAlone(const std::string& path, int threads, const PeerKind& kind) {
  const auto why = InChild(
      [&]() -> std::string {
        const auto peer = kind.open(path, threads);
        if (!peer) return peer.error().message;
        const Status ran = (*peer)->Run();
        return ran ? "" : ran.error().message;
      },
      kSecondsForOneFile);
  if (!why) return why.error().message;
  return why->empty() ? json() : json(*why);
}

// Again without the peer, where that refused or crashed.
json MeasureFile(const std::string& path, const NetArguments& arguments, int threads, const PeerKind& kind) {
  if (arguments.alone) return InOwnProcess(path, arguments, threads, nullptr);
  json row = InOwnProcess(path, arguments, threads, &kind);
  if (row.contains("we"))
    if (json why = PeerAlone(path, threads, kind); !why.is_null()) row["peer"] = why;
  if (row.contains("we") || !row.contains("peer")) return row;
  json alone = InOwnProcess(path, arguments, threads, nullptr);
  alone["peer"] = row["peer"];
  return alone;
}

// The benchmark's name, the job's, and the peer's.
struct Contest {
  std::string bench, job, peer;
};

// Writes the rounds and numbers them from `number` on. Each peer of a file needs other numbers.
void WriteRounds(const Contest& contest, const json& measured, bool with_peer, int number) {
  const Metric time{contest.bench, contest.job, "run", "ms"};
  for (const json& round : measured["rounds"]) {
    WriteRow(time, kOurs, number, round[0]);
    if (with_peer) WriteRow(time, contest.peer, number, round[1]);
    ++number;
  }
}

// Returns whether it runs here, or neither here nor there.
bool WriteFile(const Contest& contest, const json& measured, bool alone) {
  const bool peer_fails = measured.contains("peer");
  if (measured.contains("we")) {
    WriteError(contest.bench, contest.job, peer_fails ? "neither" : kOurs, measured["we"].get<std::string>());
    return peer_fails;
  }
  if (peer_fails) WriteError(contest.bench, contest.job, contest.peer, measured["peer"].get<std::string>());
  WriteRounds(contest, measured, !peer_fails && !alone, 0);
  return true;
}

// ours / peer; 0: not measured, or the peer takes less than kLeastTime.
double Ratio(const json& measured) {
  std::vector<double> ours, theirs;
  if (measured.contains("peer") || !measured.contains("rounds")) return 0;
  for (const json& round : measured["rounds"]) ours.push_back(round[0]), theirs.push_back(round[1]);
  const double peer = Median(std::move(theirs));
  return peer < kLeastTime ? 0 : Median(std::move(ours)) / peer;
}

// Returns whether most of its convolutions and FULLY_CONNECTED read 8-bit values.
bool HasByteProducts(const std::string& path, const NetArguments& arguments) {
  const auto model = OpenModel(path, arguments);
  if (!model) return false;
  int64_t products = 0, bytes = 0;
  for (const auto& function : (*model)->module().functions) {
    for (const auto& node : function->nodes) {
      if (!node->is(Op::kConv2D) && !node->is(Op::kDepthwiseConv2D) && !node->is(Op::kFullyConnected))
        continue;
      const DType input = function->value(node->operands[0]).type.dtype;
      ++products;
      bytes += input == DType::kI8 || input == DType::kU8;
    }
  }
  return 2 * bytes > products;
}

void WriteSummary(const std::string& of, const std::vector<double>& ratios) {
  if (ratios.empty()) return;
  const auto write = [&](const char* what, double value) {
    WriteRow({"kernels", of, what, ""}, kOurs, 0, value);
  };
  write("files", static_cast<double>(ratios.size()));
  write("median of ours / peer", Median(ratios));
  write("largest ours / peer", *std::ranges::max_element(ratios));
  write("slower files", static_cast<double>(std::ranges::count_if(ratios, [](double r) { return r > 1; })));
}

bool CompareKernels(const NetArguments& arguments, const std::vector<std::string>& names) {
  bool good = true;
  const PeerKind peer = PeersOf(arguments)[0];
  std::vector<double> all, quantized;
  for (size_t i = 0; i < names.size(); ++i) {
    const json measured = MeasureFile(arguments.files[i], arguments, 1, peer);
    good = WriteFile({"kernels", names[i], peer.name}, measured, false) && good;
    const double ratio = Ratio(measured);
    if (ratio == 0) continue;
    all.push_back(ratio);
    if (HasByteProducts(arguments.files[i], arguments)) quantized.push_back(ratio);
  }
  WriteSummary("all files", all);
  WriteSummary("8-bit files", quantized);
  return good;
}

// Beside the first peer, and beside the others if the file runs here.
bool CompareFile(const std::string& path, const std::string& job, const NetArguments& arguments,
                 const std::vector<PeerKind>& peers, int threads) {
  const json measured = MeasureFile(path, arguments, threads, peers[0]);
  const bool good = WriteFile({"files", job, peers[0].name}, measured, arguments.alone);
  if (measured.contains("we") || arguments.alone) return good;
  size_t rounds = measured["rounds"].size();
  for (size_t i = 1; i < peers.size(); ++i) {
    const json other = InOwnProcess(path, arguments, threads, &peers[i]);
    if (!other.contains("rounds")) {
      WriteError("files", job, peers[i].name, other[other.contains("we") ? "we" : "peer"].get<std::string>());
      continue;
    }
    WriteRounds({"files", job, peers[i].name}, other, true, static_cast<int>(rounds));
    rounds += other["rounds"].size();
  }
  return good;
}

}  // namespace

bool CompareFiles(const NetArguments& arguments) {
  bool good = true;
  const auto names = NamesOf(arguments.files);
  if (arguments.kernels) return CompareKernels(arguments, names);
  const std::vector<PeerKind> peers = PeersOf(arguments);
  for (const int threads : kThreads) {
    if (arguments.threads != 0 && threads != arguments.threads) continue;
    if (arguments.alone && threads > 1) break;
    for (size_t i = 0; i < names.size(); ++i)
      good =
          CompareFile(arguments.files[i], names[i] + OnThreads(threads), arguments, peers, threads) && good;
  }
  return good;
}

}  // namespace fusebox::bench
