// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fusebox::cli {
namespace {

constexpr char kDone = 'a';  // the first byte through the pipe: this, or this and 1 + the code of an error

std::string Encoded(const Result<std::string>& result) {
  if (result) return kDone + *result;
  return static_cast<char>(kDone + 1 + static_cast<int>(result.error().code)) + result.error().message;
}

std::string ReadAll(int from) {
  std::string out;
  char chunk[4096];
  for (ssize_t n; (n = read(from, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) out.append(chunk, static_cast<size_t>(n));
  return out;
}

}  // namespace

Result<std::string> InChild(bool quiet, const std::function<Result<std::string>()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Internal(fmt::format("no pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); quiet && null >= 0)
      dup2(null, STDERR_FILENO);
    const std::string text = Encoded(work());
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  const std::string text = child < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  if (child < 0) return Internal(fmt::format("no process: {}", std::strerror(errno)));
  waitpid(child, &status, 0);
  if (status != 0 || text.empty())
    return Invalid(fmt::format("the process that measures ended early (wait status {:#x})", status));
  if (text[0] == kDone) return text.substr(1);
  return Fail(static_cast<Code>(text[0] - kDone - 1), text.substr(1));
}

}  // namespace fusebox::cli
