// SPDX-License-Identifier: Apache-2.0
// lstm_bench [--steps N] [--seconds S] [UNITS...]: one LSTM layer (inputs = units, batch 1, one thread)
// here, in stock TFLite and in ONNX Runtime, taken from FUSEBOX_PEER_DIR, in turns: with f32 weights, with
// 8-bit weights, and in integers (not ONNX Runtime). For both of these ours with f32 weights is a peer too.
// `limit` is the input projection at the machine's multiply-add peak for such weights plus steps x the
// recurrent weights at the bandwidth of the cache they fit. Exit status 1 when outputs differ by more than
// 1e-5, with 8-bit weights 1e-2, in integers 5e-2.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "cli/bench/peak.h"
#include "tests/bench/lstm_engine.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

struct Contestant {
  std::string name;
  std::unique_ptr<LstmEngine> engine;
};

double TimeOf(LstmEngine& engine) {
  const auto start = std::chrono::steady_clock::now();
  engine.Run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Contestant> Contestants(const LstmProblem& problem) {
  std::vector<Contestant> all;
  all.push_back({kOurs, OurEngine(problem)});
  if (problem.bytes()) {
    LstmProblem same = problem;
    same.form = LstmForm::kFloats;
    all.push_back({"f32 weights", OurEngine(same)});
  }
  const char* peers = std::getenv("FUSEBOX_PEER_DIR");
  if (!peers) return all;
  all.push_back({"TFLite", TfLiteEngine(problem, std::string(peers) + "/libtensorflowlite_c.so")});
  if (!problem.integers())
    all.push_back({"ONNX Runtime", OnnxEngine(problem, std::string(peers) + "/libonnxruntime.so")});
  return all;
}

double Difference(const LstmEngine& a, const LstmEngine& b) {
  const std::vector<float> of_a = a.output(), of_b = b.output();
  double largest = 0;
  for (size_t i = 0; i < of_a.size(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(of_a[i] - of_b[i])));
  return largest;
}

// The median of the runs in at least `least` seconds, so that the engine has its weights back in the cache
// for most of its runs.
double MedianTime(LstmEngine& engine, double least) {
  TimeOf(engine);
  std::vector<double> times;
  for (double spent = 0; spent < least; spent += times.back()) times.push_back(TimeOf(engine));
  return Median(std::move(times));
}

// Operations per second.
struct Peaks {
  double floats, bytes;
};

double Limit(const LstmProblem& p, const Peaks& peaks) {
  const size_t bytes =
      (p.bytes() ? 1 : sizeof(float)) * 4 * static_cast<size_t>(p.units) * static_cast<size_t>(p.units);
  const double projection = 2.0 * p.steps * 4 * p.units * p.inputs / (p.bytes() ? peaks.bytes : peaks.floats);
  return projection +
         static_cast<double>(p.steps) * static_cast<double>(bytes) / cli::MeasureReadBandwidth(bytes);
}

// Returns whether all agree.
bool Measure(const LstmProblem& problem, double seconds, const Peaks& peaks) {
  constexpr const char* kNames[] = {"f32, ", "8-bit weights, ", "integers, "};
  const auto form = static_cast<size_t>(problem.form);
  const std::string job = kNames[form] + std::to_string(problem.units) + " units";
  std::vector<Contestant> all = Contestants(problem);
  double difference = 0;
  for (Contestant& c : all) {
    c.engine->Run();
    difference = std::max(difference, Difference(*all[0].engine, *c.engine));
  }
  constexpr int kRounds = 30;
  const double limit = Limit(problem, peaks);
  const Metric time{"lstm", job, "run", "ms"};
  for (int round = 0; round < kRounds; ++round) {
    for (Contestant& c : all)
      WriteRow(time, c.name, round, 1e3 * MedianTime(*c.engine, std::max(2e-3, seconds / kRounds)));
    WriteRow(time, "limit", round, 1e3 * limit);
  }
  // With 8-bit weights, each engine quantizes the inputs of a product by its own rounding. Integers are
  // beside f32 too.
  constexpr double kMost[] = {1e-5, 1e-2, 5e-2};
  const double most = kMost[form];
  if (difference > most) WriteError("lstm", job, kOurs, "outputs differ by " + std::to_string(difference));
  return difference <= most;
}

int Main(int argc, char** argv) {
  int steps = 128;
  double seconds = 1;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--steps") && i + 1 < argc) {
      steps = std::atoi(argv[++i]);
    } else if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      sizes.push_back(std::atoi(argv[i]));
    }
    if (steps < 1 || seconds <= 0 || (!sizes.empty() && sizes.back() < 1)) {
      std::fprintf(stderr, "usage: lstm_bench [--steps N] [--seconds S] [UNITS...]\n");
      return 2;
    }
  }
  if (sizes.empty()) sizes = {64, 128, 256, 512};
  if (!std::getenv("FUSEBOX_PEER_DIR")) std::fprintf(stderr, "FUSEBOX_PEER_DIR is not set: no peers\n");
  const Peaks peaks{cli::MeasureFlops(), cli::MeasureByteOps()};
  bool agree = true;
  for (const LstmForm form : {LstmForm::kFloats, LstmForm::kBytes, LstmForm::kIntegers})
    for (const int units : sizes) agree = Measure(RandomProblem(steps, units, form), seconds, peaks) && agree;
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  try {
    return fusebox::bench::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lstm_bench: %s\n", e.what());
    return 3;
  }
}
