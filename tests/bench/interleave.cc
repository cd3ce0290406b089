// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/interleave.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kTurn = 12;  // ms
constexpr size_t kLeast = 3;  // calls in a turn
constexpr auto kPause = std::chrono::milliseconds(2), kLongestWait = std::chrono::milliseconds(200);

double Millis(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

// Returns whether another thread of this process runs.
bool OthersRun() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');  // "number (name) state ..."
    if (name_end + 2 < line.size() && line[name_end + 2] == 'R') return true;
  }
  return false;
}

// Threads of a library spin for some milliseconds after its work, on the core of a thread of the other one.
void WaitForOthers() {
  const auto start = Clock::now();
  do std::this_thread::sleep_for(kPause);
  while (OthersRun() && Clock::now() - start < kLongestWait);
}

// The median of the calls, in ms.
Result<double> MedianTime(const std::function<Status()>& call, int threads) {
  if (threads > 1) WaitForOthers();
  FUSEBOX_TRY(call());
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < kLeast || Millis(start) < kTurn) {
    const auto begin = Clock::now();
    FUSEBOX_TRY(call());
    times.push_back(Millis(begin));
  }
  return Median(std::move(times));
}

}  // namespace

Result<std::vector<Round>> Interleave(const std::function<Status()>& a, const std::function<Status()>& b,
                                      double seconds, int threads) {
  std::vector<Round> rounds;
  const auto start = Clock::now();
  while (rounds.size() < 4 || Millis(start) < seconds * 1000) {
    Round round;
    const bool a_first = rounds.size() % 2 == 0;
    FUSEBOX_ASSIGN((a_first ? round.a : round.b), MedianTime(a_first ? a : b, threads));
    FUSEBOX_ASSIGN((a_first ? round.b : round.a), MedianTime(a_first ? b : a, threads));
    rounds.push_back(round);
  }
  return rounds;
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
