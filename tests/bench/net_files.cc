// SPDX-License-Identifier: Apache-2.0
// Files beside stock TFLite, with its XNNPACK delegate or both without a delegate. Each is measured in a
// separate process, which the peer may take down.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/bench/interleave.h"
#include "tests/bench/names.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
constexpr unsigned kSecondsForOneFile = 120;
constexpr int kThreads[] = {1, 2};
constexpr char kPeer[] = "TFLite + XNNPACK";
constexpr double kLeastTime = 0.05;  // ms: files that take less are not in the summary of kernels

json Rounds(const std::vector<Round>& rounds) {
  json all = json::array();
  for (const Round& round : rounds) all.push_back({round.a, round.b});
  return {{"rounds", std::move(all)}};
}

json Failed(const Error& error, const char* who) { return {{who, error.message}}; }

Result<std::unique_ptr<testing::Stock>> OpenPeer(const std::string& path, const NetArguments& arguments,
                                                 int threads) {
  return arguments.kernels ? testing::Stock::Open(path) : testing::Stock::WithXnnpack(path, threads);
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
  auto stock = OpenPeer(path, arguments, threads);
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
json PeerAlone(const std::string& path, const NetArguments& arguments, int threads) {
  const auto why = InChild(
      [&]() -> std::string {
        const auto stock = OpenPeer(path, arguments, threads);
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
    if (json why = PeerAlone(path, arguments, threads); !why.is_null()) row["peer"] = why;
  if (row.contains("we") || !row.contains("peer")) return row;
  json alone = InOwnProcess(path, arguments, threads, false);
  alone["peer"] = row["peer"];
  return alone;
}

// The benchmark's name and the peer's.
struct Contest {
  const char *bench, *peer;
};

// Returns whether it runs here, or neither here nor there.
bool WriteFile(const Contest& contest, const std::string& job, const json& measured, bool alone) {
  const bool peer_fails = measured.contains("peer");
  if (measured.contains("we")) {
    WriteError(contest.bench, job, peer_fails ? "neither" : kOurs, measured["we"].get<std::string>());
    return peer_fails;
  }
  if (peer_fails) WriteError(contest.bench, job, contest.peer, measured["peer"].get<std::string>());
  const Metric time{contest.bench, job, "run", "ms"};
  int number = 0;
  for (const json& round : measured["rounds"]) {
    WriteRow(time, kOurs, number, round[0]);
    if (!peer_fails && !alone) WriteRow(time, contest.peer, number, round[1]);
    ++number;
  }
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
  std::vector<double> all, quantized;
  for (size_t i = 0; i < names.size(); ++i) {
    const json measured = MeasureFile(arguments.files[i], arguments, 1);
    good = WriteFile({"kernels", "TFLite"}, names[i], measured, false) && good;
    const double ratio = Ratio(measured);
    if (ratio == 0) continue;
    all.push_back(ratio);
    if (HasByteProducts(arguments.files[i], arguments)) quantized.push_back(ratio);
  }
  WriteSummary("all files", all);
  WriteSummary("8-bit files", quantized);
  return good;
}

}  // namespace

bool CompareFiles(const NetArguments& arguments) {
  bool good = true;
  const auto names = NamesOf(arguments.files);
  if (arguments.kernels) return CompareKernels(arguments, names);
  for (const int threads : kThreads) {
    if (arguments.threads != 0 && threads != arguments.threads) continue;
    if (arguments.alone && threads > 1) break;
    for (size_t i = 0; i < names.size(); ++i) {
      const json measured = MeasureFile(arguments.files[i], arguments, threads);
      good = WriteFile({"files", kPeer}, names[i] + OnThreads(threads), measured, arguments.alone) && good;
    }
  }
  return good;
}

}  // namespace fusebox::bench
