// SPDX-License-Identifier: Apache-2.0
#include "check/child.h"

#include <fcntl.h>
#include <fenv.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "check/guard.h"

namespace fusebox::check {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // its shadow memory needs more address space than any limit
#else
constexpr bool kSanitized = false;
#endif

constexpr size_t kPlaceBytes = 512;
constexpr size_t kLongestOutput = 400;

// Written by the child, read by the parent: shared pages.
char* place_text = nullptr;

size_t AddressSpace() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void SetLimits(const Limits& limits) {
  const auto cpu = static_cast<rlim_t>(std::ceil(limits.seconds)) + 1;
  const rlimit time{cpu, cpu + 1};
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CPU, &time);
  setrlimit(RLIMIT_CORE, &none);
  const rlim_t bytes = AddressSpace() + limits.memory;
  const rlimit space{bytes, bytes};
  if (!kSanitized) setrlimit(RLIMIT_AS, &space);
}

// Adds the block and the kind of access to the place. The access is repeated, and ends the process.
void OnFault(int signal, siginfo_t* info, [[maybe_unused]] void* context) {
  const char* kind = "access";
#if defined(__x86_64__)
  kind = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
#endif
  const size_t used = strlen(place_text);
  DescribeAccess(static_cast<const std::byte*>(info->si_addr), kind, {place_text + used, kPlaceBytes - used});
  ::signal(signal, SIG_DFL);
}

void SetSignals() {
  if (kSanitized) return;  // its report is on stderr
  for (const int signal : {SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGALRM}) ::signal(signal, SIG_DFL);
  struct sigaction fault = {};
  fault.sa_sigaction = OnFault;
  fault.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGSEGV, SIGBUS}) sigaction(signal, &fault, nullptr);
}

void EnterFolder(const std::string& folder) {
  if (chdir(folder.c_str()) != 0) _exit(2);
  for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"})
    setenv(name, folder.c_str(), 1);
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// The child's main. The first byte of the answer tells it from the end of a process without one.
[[noreturn]] void Work(const std::function<std::string()>& work, const Limits& limits,
                       const std::string& folder, const std::string& output, int answer) {
  setpgid(0, 0);
  SetSignals();
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(2);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  if (getenv("FUSEBOX_LOG") == nullptr) dup2(null, STDERR_FILENO);
  close(out);
  close(null);
  EnterFolder(folder);
  SetLimits(limits);
  const std::string result = work();
  fflush(stdout);
  WriteAll(answer, "!" + result);
  _exit(0);  // not exit: handlers of the plugin and of the parent must not run
}

// Reads until the child closes the pipe. Returns false if the time is over.
bool ReadAnswer(int fd, Clock::time_point deadline, std::string& answer) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one{fd, POLLIN, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) return true;
    answer.append(buffer, static_cast<size_t>(count));
  }
}

// Waits for the child; after the deadline it is killed, with what it started.
int Reap(pid_t child, Clock::time_point deadline, bool& timed_out) {
  int status = 0;
  for (;;) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) break;
    if (Clock::now() > deadline || timed_out) {
      timed_out = true;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    usleep(2000);
  }
  kill(-child, SIGKILL);
  return status;
}

std::string InPlace() { return place_text[0] != 0 ? " in " + std::string(place_text) : std::string(); }

std::string WhyEnded(int status, bool timed_out, const Limits& limits) {
  if (timed_out || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    return "not done after " + std::to_string(static_cast<int>(limits.seconds)) + " s" + InPlace();
  if (WIFSIGNALED(status))
    return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")" +
           InPlace();
  return "the process ended (exit was called)" + InPlace();
}

std::string FirstFileIn(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_directory(error)) return fs::relative(entry.path(), folder, error).string();
  }
  return {};
}

std::string StartOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongestOutput, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

struct TemporaryFolder {
  std::string path = (fs::temp_directory_path() / "fusebox-check-XXXXXX").string();
  bool made = mkdtemp(path.data()) != nullptr;
  ~TemporaryFolder() {
    std::error_code error;
    if (made) fs::remove_all(path, error);
  }
};

}  // namespace

std::array<uint64_t, 2> FloatMode() {
#if defined(__x86_64__)
  return {static_cast<uint64_t>(fegetround()), __builtin_ia32_stmxcsr() & ~0x3fU};
#elif defined(__aarch64__)
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return {static_cast<uint64_t>(fegetround()), control};
#else
  return {static_cast<uint64_t>(fegetround()), 0};
#endif
}

void SetPlace(const char* callback, std::string_view subject) {
  if (place_text == nullptr) return;
  snprintf(place_text, kPlaceBytes, "%s of %.*s", callback, static_cast<int>(subject.size()), subject.data());
}

Result<Ended> RunInChild(const std::function<std::string()>& work, const Limits& limits) {
  if (place_text == nullptr) {
    void* const pages = mmap(nullptr, kPlaceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return Fail(Code::kOutOfMemory, "out of memory");
    place_text = static_cast<char*>(pages);
  }
  place_text[0] = 0;
  const TemporaryFolder folder;
  int answer[2];
  if (!folder.made || pipe2(answer, O_CLOEXEC) != 0)
    return IoError(folder.path + ": cannot start a test: " + std::string(strerror(errno)));
  const std::string own = folder.path + "/own";
  const std::string output = folder.path + "/stdout";
  std::error_code error;
  fs::create_directory(own, error);
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(answer[0]);
    Work(work, limits, own, output, answer[1]);
  }
  close(answer[1]);
  if (child < 0) {
    close(answer[0]);
    return IoError("cannot start a process: " + std::string(strerror(errno)));
  }
  Ended ended;
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1000));
  ended.timed_out = !ReadAnswer(answer[0], deadline, ended.result);
  close(answer[0]);
  const int status = Reap(child, deadline + std::chrono::seconds(1), ended.timed_out);
  ended.finished = ended.result.starts_with('!');
  if (ended.finished) ended.result.erase(0, 1);
  else ended.why = WhyEnded(status, ended.timed_out, limits);
  ended.out = StartOf(output);
  ended.files = FirstFileIn(own);
  return ended;
}

}  // namespace fusebox::check
