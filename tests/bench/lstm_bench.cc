// SPDX-License-Identifier: Apache-2.0
// lstm_bench [--steps N] [--seconds S] [--best] [UNITS...]: one f32 LSTM layer (inputs = units, batch 1, one thread) here, in stock
// TFLite and in ONNX Runtime, taken from FUSEBOX_PEER_DIR. The engines take turns; times are medians, or
// with --best the least, for a machine that is not quiet. `limit` is the input
// projection at the machine's multiply-add peak plus steps x the recurrent weights at the bandwidth of the cache they fit.
// Exit status 1 when outputs differ by more than 1e-5.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/bench/lstm_engine.h"

namespace fusebox::bench {
namespace {

struct Contestant {
  std::string name;
  std::unique_ptr<LstmEngine> engine;
  std::vector<double> times;  // seconds

  double Time(bool best) {
    if (best) return *std::min_element(times.begin(), times.end());
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }
};

double TimeOf(LstmEngine& engine) {
  const auto start = std::chrono::steady_clock::now();
  engine.Run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Contestant> Contestants(const LstmProblem& problem) {
  std::vector<Contestant> all;
  all.push_back({"fusebox", OurEngine(problem), {}});
  const char* peers = std::getenv("FUSEBOX_PEER_DIR");
  if (!peers) return all;
  all.push_back({"tflite", TfLiteEngine(problem, std::string(peers) + "/libtensorflowlite_c.so"), {}});
  all.push_back({"onnx", OnnxEngine(problem, std::string(peers) + "/libonnxruntime.so"), {}});
  return all;
}

double Difference(const LstmEngine& a, const LstmEngine& b, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; ++i)
    largest = std::max(largest, static_cast<double>(std::abs(a.output()[i] - b.output()[i])));
  return largest;
}

// A turn is at least 2 ms of one engine, so that each has its weights back in the cache for most of its runs.
void Measure(std::vector<Contestant>& all, double seconds) {
  for (double spent = 0; spent < seconds * static_cast<double>(all.size());) {
    for (Contestant& c : all) {
      TimeOf(*c.engine);
      for (double turn = 0; turn < 2e-3; spent += c.times.back())
        turn += c.times.emplace_back(TimeOf(*c.engine));
    }
  }
}

double Limit(const LstmProblem& p, double flops) {
  const size_t bytes = sizeof(float) * 4 * static_cast<size_t>(p.units) * static_cast<size_t>(p.units);
  const double projection = 2.0 * p.steps * 4 * p.units * p.inputs / flops;
  return projection + static_cast<double>(p.steps) * static_cast<double>(bytes) / MeasureReadBandwidth(bytes);
}

// Returns whether all agree.
bool Row(int steps, int units, double seconds, bool best, double flops) {
  const LstmProblem problem = RandomProblem(steps, units);
  std::vector<Contestant> all = Contestants(problem);
  double difference = 0;
  for (Contestant& c : all) {
    c.engine->Run();
    difference =
        std::max(difference, Difference(*all[0].engine, *c.engine, static_cast<size_t>(steps * units)));
  }
  Measure(all, seconds);
  const double ours = all[0].Time(best), limit = Limit(problem, flops);
  std::printf("%6d %6d %10.4f %10.4f %7.2f", units, steps, ours * 1e3, limit * 1e3, ours / limit);
  for (size_t i = 1; i < all.size(); ++i)
    std::printf(" %10.4f %7.2f", all[i].Time(best) * 1e3, all[i].Time(best) / ours);
  if (all.size() > 1) std::printf(" %10.1e", difference);
  std::printf("\n");
  std::fflush(stdout);
  return difference <= 1e-5;
}

int Main(int argc, char** argv) {
  int steps = 128;
  double seconds = 1;
  bool best = false;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--steps") && i + 1 < argc) {
      steps = std::atoi(argv[++i]);
    } else if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (!std::strcmp(argv[i], "--best")) {
      best = true;
    } else {
      sizes.push_back(std::atoi(argv[i]));
    }
    if (steps < 1 || seconds <= 0 || (!sizes.empty() && sizes.back() < 1)) {
      std::fprintf(stderr, "usage: lstm_bench [--steps N] [--seconds S] [--best] [UNITS...]\n");
      return 2;
    }
  }
  if (sizes.empty()) sizes = {64, 128, 256, 512};
  const bool peers = std::getenv("FUSEBOX_PEER_DIR") != nullptr;
  if (!peers) std::fprintf(stderr, "FUSEBOX_PEER_DIR is not set: no peers\n");
  const double flops = MeasureFlops();
  std::printf("multiply-add peak %.0f GFLOP/s\n", flops / 1e9);
  std::printf("%6s %6s %10s %10s %7s%s\n", "units", "steps", "ours ms", "limit ms", "/limit",
              peers ? "  tflite ms   /ours    onnx ms   /ours difference" : "");
  bool agree = true;
  for (const int units : sizes) agree = Row(steps, units, seconds, best, flops) && agree;
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
