// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/turns.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace fusebox::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kTurn = 0.012;  // seconds
constexpr size_t kLeast = 3;     // calls in a turn
constexpr size_t kRounds = 2;

double Since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

Result<double> Time(const Call& call, double delay) {
  if (delay > 0) std::this_thread::sleep_for(Seconds(delay));
  const auto start = Clock::now();
  FUSEBOX_TRY(call());
  return Since(start) * 1e6;
}

Result<std::vector<double>> TakeTurn(const Call& call, double delay) {
  FUSEBOX_TRY(call());
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < kLeast || Since(start) < kTurn) {
    FUSEBOX_ASSIGN(const double time, Time(call, delay));
    times.push_back(time);
  }
  return times;
}

bool Reached(const Limits& limits, size_t rounds, size_t calls, double seconds) {
  if (seconds >= limits.max_seconds) return true;
  return rounds >= kRounds && calls >= static_cast<size_t>(limits.runs) && seconds >= limits.min_seconds;
}

}  // namespace

Result<std::vector<double>> Repeat(const Call& call, const Limits& limits) {
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    FUSEBOX_ASSIGN(const double time, Time(call, limits.delay));
    times.push_back(time);
  } while (!Reached(limits, kRounds, times.size(), Since(start)));
  return times;
}

Result<std::vector<Turns>> TakeTurns(std::span<const Call> calls, const Limits& limits) {
  std::vector<Turns> out(calls.size());
  size_t fewest = 0;
  const auto start = Clock::now();
  const auto seconds = [&] { return Since(start) / static_cast<double>(calls.size()); };
  for (size_t round = 0; !Reached(limits, round, fewest, seconds()) || round == 0; ++round) {
    size_t counted = SIZE_MAX;
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t who = (round + i) % calls.size();
      FUSEBOX_ASSIGN(std::vector<double> times, TakeTurn(calls[who], limits.delay));
      counted = std::min(counted, times.size());
      out[who].push_back(std::move(times));
    }
    fewest += counted;
  }
  return out;
}

}  // namespace fusebox::cli
