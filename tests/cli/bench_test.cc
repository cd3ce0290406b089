// SPDX-License-Identifier: Apache-2.0
// fusebox bench: its lines, ratios and profiles, and the statistics behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "cli/bench/report.h"
#include "cli/bench/statistics.h"
#include "cli/bench/turns.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// y = x [batch,3] * weights [4,3]^T, at node "dense".
std::string WriteDense(int64_t batch = 1) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({DType::kF32, {batch, 3}}, "x");
  const ValueId weights = f.AddConst<float>(DType::kF32, {4, 3}, std::vector<float>(12, 0.5F));
  Node& node = f.AddNode(Op::kFullyConnected, {x, weights, kNoValue}, {{DType::kF32, {batch, 4}}});
  node.location.name = "dense";
  f.value(node.results[0]).name = "dense";
  f.outputs = node.results;
  const Status written = tflite::WriteFile(module, Path("dense.tflite"));
  EXPECT_TRUE(written) << written.error().message;
  return Path("dense.tflite");
}

Finished Bench(std::vector<std::string> arguments) {
  for (const char* word : {"--num_runs=7", "--min_secs=0", "--warmup_min_secs=0"}) arguments.push_back(word);
  arguments.insert(arguments.begin(), "bench");
  return Fusebox(arguments);
}

TEST(Bench, PrintsTheLinesOfBenchmarkModel) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const Finished done = Bench({"--graph=" + model});
  EXPECT_EQ(done.status, 0) << done.err;
  const std::regex runs(
      R"(count=(\d+) first=(\d+) curr=(\d+) min=(\d+) max=(\d+) avg=([\d.e+]+) std=(\d+)\n)");
  const std::regex summary(
      R"(Inference timings in us: Init: (\d+), First inference: (\d+), Warmup \(avg\): ([\d.e+]+), Inference \(avg\): ([\d.e+]+)\n)");
  const std::regex memory(
      R"(Memory footprint delta from the start of the tool \(MB\): init=([\d.]+) overall=([\d.]+)\n)");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(done.out, found, runs)) << done.out;
  EXPECT_EQ(found[1], "7");
  ASSERT_TRUE(std::regex_search(done.out, found, summary)) << done.out;
  EXPECT_GT(std::stoi(found[1]), 0);
  ASSERT_TRUE(std::regex_search(done.out, found, memory)) << done.out;
  EXPECT_GE(std::stod(found[2]), std::stod(found[1]));
  EXPECT_THAT(done.out, HasSubstr("Running benchmark for at least 7 iterations and at least 0 seconds"));
}

TEST(Bench, SizesThatTheFileLeavesOpenAreThoseOfTheInputs) {
  const std::string model = WriteDense(-1);
  for (const char* cold : {"--cold=1", "--profile"}) {
    const Finished done = Bench({model, cold, "--json"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.Json()["contestants"][0]["runs"]["count"], 7);
  }
}

TEST(Bench, PutsModelsAndDelegatesBesideEachOther) {
  const std::string model = WriteDense(), other = WriteAddModel("add.tflite", 1);
  const Finished done = Bench({model, other, "--vs", "none", "--plugin", PluginFolder("fusebox.xnnpack"),
                               "--delegate", "xnnpack", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json all = done.Json()["contestants"];
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["delegates"], "xnnpack");
  EXPECT_EQ(all[1]["model"], other);
  EXPECT_EQ(all[2]["model"], model);
  EXPECT_EQ(all[2]["delegates"], "none");
  EXPECT_FALSE(all[0].contains("ratio"));
  for (const size_t i : {1, 2}) {
    const json& ratio = all[i]["ratio"];
    EXPECT_LE(ratio["low"].get<double>(), ratio["value"].get<double>());
    EXPECT_LE(ratio["value"].get<double>(), ratio["high"].get<double>());
    EXPECT_GE(all[i]["runs"]["count"].get<int>(), 7);
    EXPECT_LE(all[i]["runs"]["p50_us"].get<double>(), all[i]["runs"]["p99_9_us"].get<double>());
  }
  EXPECT_GT(done.Json()["memory"]["peak_bytes"].get<size_t>(), 1'000'000u);
}

TEST(Bench, PrintsCsv) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const Finished done = Bench({model, "--vs", model, "--csv"});
  ASSERT_EQ(done.status, 0) << done.err;
  std::vector<ptrdiff_t> commas;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) commas.push_back(std::ranges::count(line, ','));
  EXPECT_THAT(commas, ElementsAre(19, 19, 19));
}

TEST(Bench, StartsProcessesOfTheirOwn) {
  const Finished done = Bench({WriteAddModel("add.tflite", 1), "--cold", "2", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json cold = done.Json()["contestants"][0]["cold"];
  EXPECT_EQ(cold["init"]["count"], 2);
  EXPECT_GT(cold["first"]["p50_us"].get<double>(), 0);
}

TEST(Bench, ProfilesNodes) {
  const Finished done = Bench({WriteDense(), "--delegate", "none", "--profile", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json profile = done.Json()["contestants"][0]["profile"];
  ASSERT_EQ(profile["rows"].size(), 1u);
  const json& row = profile["rows"][0];
  EXPECT_EQ(row["type"], "FULLY_CONNECTED");
  EXPECT_EQ(row["name"], "dense");
  EXPECT_EQ(row["calls"], 1.0);
  EXPECT_EQ(row["flops"], 2.0 * 4 * 3);
  EXPECT_EQ(row["bytes"], 4.0 * (3 + 12 + 4));
  EXPECT_GT(row["avg_ms"].get<double>(), 0);
  EXPECT_EQ(profile["nodes_ms"], row["avg_ms"]);
  EXPECT_GE(profile["run_ms"].get<double>(), profile["nodes_ms"].get<double>());
}

TEST(Bench, ProfilesTheOperatorsOfADelegate) {
  const Finished done = Bench({WriteDense(), "--plugin", PluginFolder("fusebox.xnnpack"), "--delegate",
                               "xnnpack", "--enable_op_profiling=true"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out,
              HasSubstr("[node type]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]"));
  EXPECT_TRUE(std::regex_search(done.out, std::regex(R"(\t +> 0 Fully Connected \(NC, F32\) GEMM\t)")))
      << done.out;
  EXPECT_TRUE(std::regex_search(
      done.out, std::regex(R"(Summary by node type[^]*\t +Fully Connected \(NC, F32\) GEMM\t +1\t)")))
      << done.out;
}

TEST(Bench, RefusesWhatItCannotRun) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const auto expect = [](const Finished& done, const std::string& text) {
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr(text));
  };
  expect(Bench({Path("missing.tflite")}), "missing.tflite: No such file");
  expect(Bench({model, "--vs", "missing.tflite"}), "missing.tflite: No such file");
  expect(Bench({model, "--vs", "nosuch"}), "delegate nosuch");
  expect(Bench({model, "--pin", "1023"}), "--pin 1023: none of these CPUs");
  expect(Bench({model, "--shape", "x=4", "--cold", "1"}), "add.tflite");
  expect(Bench({model, "--csv", "--json"}), "--csv");
}

TEST(Statistics, AreThoseOfTheTimes) {
  const std::vector<double> times = {5, 1, 2, 4, 3};
  const cli::Summary s = cli::Summarize(times);
  EXPECT_EQ(s.count, 5u);
  EXPECT_EQ(s.first, 5);
  EXPECT_EQ(s.last, 3);
  EXPECT_EQ(s.least, 1);
  EXPECT_EQ(s.most, 5);
  EXPECT_DOUBLE_EQ(s.mean, 3);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(s.p50, 3);
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_DOUBLE_EQ(cli::Median(std::vector<double>{1, 2, 4, 8}), 3);
}

TEST(Statistics, AnEstimateHoldsTheRatioAndShrinksWithoutNoise) {
  const cli::Ratio exact = cli::Estimate(std::vector<double>(8, 1.5));
  EXPECT_DOUBLE_EQ(exact.value, 1.5);
  EXPECT_DOUBLE_EQ(exact.low, 1.5);
  EXPECT_DOUBLE_EQ(exact.high, 1.5);
  const cli::Ratio noisy = cli::Estimate(std::vector<double>{1, 2, 4, 8, 16, 32, 64, 128});
  EXPECT_DOUBLE_EQ(noisy.low, 1);
  EXPECT_DOUBLE_EQ(noisy.value, std::sqrt(8.0 * 16));
  EXPECT_DOUBLE_EQ(noisy.high, 128);
}

// Equal contestants differ to either side alike: of all ways to do so, one in a hundred may be a difference.
TEST(Statistics, EqualContestantsSeldomDiffer) {
  int differences = 0;
  for (unsigned signs = 0; signs < 4096; ++signs) {
    std::vector<double> ratios;
    for (unsigned i = 0; i < 12; ++i) ratios.push_back(std::exp((signs >> i & 1 ? 0.01 : -0.01) * (i + 1)));
    const cli::Ratio ratio = cli::Estimate(ratios);
    differences += ratio.low > 1 || ratio.high < 1;
  }
  EXPECT_GT(differences, 0);
  EXPECT_LE(differences, 40);
}

// The ratios of a run of `bench`: "same" of a file with itself, else with one that has 5 % or 10 % more work.
struct Series {
  std::string kind;
  std::vector<double> ratios;
};
std::vector<Series> RecordedSeries() {
  std::vector<Series> out;
  std::ifstream file(FUSEBOX_SOURCE_DIR "/tests/cli/bench_series.txt");
  for (std::string line, word; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    Series series;
    words >> series.kind >> word >> word >> word;
    for (double ratio = 0; words >> ratio;) series.ratios.push_back(ratio);
    out.push_back(std::move(series));
  }
  return out;
}

size_t CountVerdicts(const std::string& kind, const std::string& verdict, double slower, size_t* all) {
  size_t found = 0;
  for (Series& series : RecordedSeries()) {
    if (series.kind != kind) continue;
    for (double& ratio : series.ratios) ratio *= slower;
    found += cli::Verdict(cli::Estimate(series.ratios)).starts_with(verdict);
    ++*all;
  }
  return found;
}

TEST(Statistics, RecordedSeriesHaveTheirVerdicts) {
  size_t same = 0, slower = 0, five = 0, ten = 0;
  const size_t differ =
      CountVerdicts("same", "slower", 1, &same) + CountVerdicts("same", "faster", 1, &slower);
  EXPECT_GE(same, 39u);
  EXPECT_LE(differ * 20, same);
  EXPECT_GE(CountVerdicts("5%", "slower", 1, &five) * 4, five * 3);
  EXPECT_EQ(CountVerdicts("10%", "slower", 1, &ten), ten);
  EXPECT_GE(std::min(five, ten), 4u);
}

TEST(Statistics, TurnsRotateAndCountAllButTheirFirstCalls) {
  std::vector<int> order;
  std::vector<cli::Call> calls;
  for (int who = 0; who < 3; ++who)
    calls.push_back([&, who]() -> Status {
      if (order.empty() || order.back() != who) order.push_back(who);
      return {};
    });
  const auto turns = cli::TakeTurns(calls, {.runs = 1, .min_seconds = 0, .max_seconds = 100});
  ASSERT_TRUE(turns);
  ASSERT_EQ(turns->size(), 3u);
  EXPECT_GE((*turns)[0].size(), 2u) << "rounds";
  for (const cli::Turns& rounds : *turns)
    for (const std::vector<double>& times : rounds) EXPECT_GE(times.size(), 3u);
  order.resize(6);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 1, 2, 0));
}

TEST(Statistics, RepeatsUpToItsLimits) {
  int count = 0;
  const cli::Call call = [&]() -> Status { return ++count, Status(); };
  EXPECT_EQ(cli::Repeat(call, {.runs = 9, .min_seconds = 0})->size(), 9u);
  EXPECT_EQ(cli::Repeat(call, {.runs = 9, .min_seconds = 0, .max_seconds = 0})->size(), 1u);
  const auto failed = cli::Repeat([]() -> Status { return Invalid("broken"); }, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "broken");
}

}  // namespace
}  // namespace fusebox::cli_test
