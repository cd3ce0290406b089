// SPDX-License-Identifier: Apache-2.0
// Group "process": what a plugin leaves behind in the process after it was loaded, its models were run, and
// it was unloaded.
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>

#include "check/workload.h"

namespace fusebox::check {
namespace {

namespace fs = std::filesystem;

// Loads, runs and unloads. Error: only if the plugin does not load; separate tests find models that fail.
Status UseOnce(const Subject& subject) {
  FUSEBOX_ASSIGN(const auto rig, Rig::Create(subject.manifest, subject.options.config, {}));
  for (const std::string& path : subject.models) {
    for (const bool delegates : {false, true}) {
      if (delegates && subject.manifest.delegates.empty()) continue;
      const auto model = OpenModel(*rig, path, delegates);
      if (model) (void)RunModel(*model, {.threads = 2, .delegates = delegates, .seed = subject.options.seed});
    }
  }
  return {};
}

template <class Check>
Finding AfterUse(const Subject& subject, const Check& check) {
  if (const Status used = UseOnce(subject); !used)
    return NotTested("it does not load: " + used.error().message);
  return check();
}

Finding Output(const Subject& subject) {
  return AfterUse(subject, [] { return Passed(); });
}
Finding CheckOutput(const Ended& ended) {
  if (ended.out.empty()) return Passed();
  std::string line = ended.out.substr(0, ended.out.find('\n'));
  if (line.size() > 60) line = line.substr(0, 60) + "...";
  return Failed("it prints to stdout, which belongs to the program: \"" + line + "\"");
}
Finding CheckFiles(const Ended& ended) {
  if (ended.files.empty()) return Passed();
  return Failed("it leaves the file " + ended.files + " in the current folder, HOME or TMPDIR");
}

std::set<std::string> Descriptors() {
  std::set<std::string> open;
  std::error_code error;
  for (auto it = fs::directory_iterator("/proc/self/fd", error); !error && it != decltype(it)();
       it.increment(error))
    open.insert(it->path().filename().string() + " (" + fs::read_symlink(it->path(), error).string() + ")");
  std::erase_if(open, [](const std::string& text) { return text.find("/proc/") != std::string::npos; });
  return open;
}

Finding Files(const Subject& subject) {
  const std::set<std::string> before = Descriptors();
  return AfterUse(subject, [&] {
    for (const std::string& descriptor : Descriptors())
      if (!before.contains(descriptor)) return Failed("it leaves a file open: descriptor " + descriptor);
    return Passed();
  });
}

size_t ThreadCount() {
  std::error_code error;
  size_t count = 0;
  for (auto it = fs::directory_iterator("/proc/self/task", error); !error && it != decltype(it)();
       it.increment(error))
    ++count;
  return count;
}

Finding Threads(const Subject& subject) {
  const size_t before = ThreadCount();
  return AfterUse(subject, [&] {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (ThreadCount() > before && std::chrono::steady_clock::now() < latest)
      usleep(10000);  // ended ones disappear late
    if (ThreadCount() == before) return Passed();
    return Failed("it leaves " + std::to_string(ThreadCount() - before) + " threads after unload");
  });
}

size_t Allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

constexpr size_t kRounds = 5;

// Returns the least growth of a round, per use, or nullopt if the time is up.
std::optional<size_t> Growth(const Subject& subject, int times, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  size_t at[kRounds] = {};
  for (size_t& bytes : at) {
    for (int i = 0; i < times; ++i) (void)UseOnce(subject);
    bytes = Allocated();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (spent.count() > seconds) return std::nullopt;
  }
  size_t least = SIZE_MAX;
  for (size_t i = 1; i < std::size(at); ++i) least = std::min(least, at[i] - std::min(at[i], at[i - 1]));
  return least / static_cast<size_t>(times);
}

Finding Leaks(const Subject& subject) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return NotTested("this build's allocator counts nothing; the leak sanitizer reports them");
#endif
  // The allocator counts the blocks in its caches as used. They grow by fits, a leak by as much in each
  // round, and also when it is measured again.
  constexpr int kMost = 20;
  constexpr int kAttempts = 2;
  constexpr size_t kSmallestBlock = 32;  // of malloc, with its header
  const auto start = std::chrono::steady_clock::now();
  if (const Status used = UseOnce(subject); !used)
    return NotTested("it does not load: " + used.error().message);
  const std::chrono::duration<double> once = std::chrono::steady_clock::now() - start;
  const double seconds = subject.options.seconds / kAttempts;
  const int times = std::clamp(static_cast<int>(seconds / 2 / kRounds / once.count()), 2, kMost);
  size_t least = SIZE_MAX;
  for (int attempt = 0; attempt < kAttempts && least >= kSmallestBlock; ++attempt) {
    const auto bytes = Growth(subject, times, 0.7 * seconds);
    if (!bytes) return NotTested("it takes too long; raise --timeout");
    least = std::min(least, *bytes);
  }
  if (least < kSmallestBlock) return Passed();
  return Failed("each load, run of its models and unload leaks " + std::to_string(least) + " bytes");
}

Finding Signals(const Subject& subject) {
  struct sigaction before[NSIG] = {};
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int i = 1; i < NSIG; ++i) sigaction(i, nullptr, &before[i]);
  return AfterUse(subject, [&] {
    for (int i = 1; i < NSIG; ++i) {
      struct sigaction now = {};
      sigaction(i, nullptr, &now);
      if (now.sa_handler != before[i].sa_handler)
        return Failed("it changes the handler of signal " + std::to_string(i) + " (" + strsignal(i) + ")");
    }
    sigset_t after;
    sigprocmask(SIG_SETMASK, nullptr, &after);
    for (int i = 1; i < NSIG; ++i)
      if (sigismember(&mask, i) != sigismember(&after, i))
        return Failed("it changes whether signal " + std::to_string(i) + " is blocked");
    return Passed();
  });
}

// The environment, one variable a line.
std::string Environment() {
  std::string all;
  for (char** variable = environ; *variable != nullptr; ++variable) all += std::string(*variable) + "\n";
  return all;
}

Finding Settings(const Subject& subject) {
  const std::string locale = setlocale(LC_ALL, nullptr);
  const auto mode = FloatMode();
  const std::string environment = Environment();
  std::error_code error;
  const fs::path folder = fs::current_path(error);
  const mode_t mask = umask(0);
  umask(mask);
  return AfterUse(subject, [&] {
    if (const char* now = setlocale(LC_ALL, nullptr); locale != now)
      return Failed("it changes the locale to " + std::string(now));
    if (FloatMode() != mode)
      return Failed("it changes the mode of floating-point arithmetic: rounding, traps or denormals");
    if (fs::current_path(error) != folder) return Failed("it changes the current folder");
    if (Environment() != environment) return Failed("it changes the environment (setenv)");
    const mode_t now = umask(mask);
    return now == mask ? Passed() : Failed("it changes the umask");
  });
}

constexpr std::array kProcessTests = {
    Test{"process.output", "prints nothing to stdout", Test::Of::kPlugin, Output, CheckOutput},
    Test{"process.folder", "leaves no file in the current folder, HOME or TMPDIR", Test::Of::kPlugin, Output,
         CheckFiles},
    Test{"process.files", "leaves no file open", Test::Of::kPlugin, Files},
    Test{"process.threads", "leaves no thread", Test::Of::kPlugin, Threads},
    Test{"process.memory", "leaks no memory", Test::Of::kPlugin, Leaks},
    Test{"process.signals", "changes no signal handler", Test::Of::kPlugin, Signals},
    Test{"process.settings", "changes no locale, rounding mode, environment, current folder or umask",
         Test::Of::kPlugin, Settings},
};

}  // namespace

std::span<const Test> ProcessTests() { return kProcessTests; }

}  // namespace fusebox::check
