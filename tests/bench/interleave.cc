// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/interleave.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

namespace fusebox::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kTurn = 12;  // ms
constexpr size_t kLeast = 3;  // calls in a turn
constexpr auto kPause = std::chrono::milliseconds(8);

double Millis(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

Times Sum(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() / 20]};
}

Status Turn(const std::function<Status()>& call, int threads, std::vector<double>& times) {
  if (threads > 1) std::this_thread::sleep_for(kPause);
  FUSEBOX_TRY(call());
  const auto start = Clock::now();
  for (size_t i = 0; i < kLeast || Millis(start) < kTurn; ++i) {
    const auto begin = Clock::now();
    FUSEBOX_TRY(call());
    times.push_back(Millis(begin));
  }
  return {};
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<Pair> Interleave(const std::function<Status()>& a, const std::function<Status()>& b, double seconds,
                        int threads) {
  std::vector<double> of_a, of_b;
  const auto start = Clock::now();
  for (int turn = 0; turn < 4 || Millis(start) < seconds * 1000; ++turn) {
    const bool a_first = turn % 2 == 0;
    FUSEBOX_TRY(a_first ? Turn(a, threads, of_a) : Turn(b, threads, of_b));
    FUSEBOX_TRY(a_first ? Turn(b, threads, of_b) : Turn(a, threads, of_a));
  }
  return Pair{Sum(std::move(of_a)), Sum(std::move(of_b))};
}

Result<std::string> InChild(const std::function<std::string()>& work, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return Internal("no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(seconds);
    const std::string said = work();
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = read(ends[0], chunk.data(), chunk.size())) > 0;)
    said.append(chunk.data(), static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return Internal("ended by signal " + std::to_string(WTERMSIG(status)));
  if (status != 0) return Internal("failed");
  return said;
}

}  // namespace fusebox::bench
