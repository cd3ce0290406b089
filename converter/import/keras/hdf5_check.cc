// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/hdf5_check.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "host/base/prefix.h"

namespace fusebox::keras {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Status SystemError(const char* call) {
  return IoError(std::string("the check of an HDF5 file cannot start: ") + call + ": " +
                 std::strerror(errno));
}

// Members of an archive exist only in memory.
Status Fill(int fd, const Buffer& file) {
  for (size_t at = 0; at < file.size();) {
    const ssize_t written = write(fd, file.data() + at, file.size() - at);
    if (written < 0 && errno != EINTR) return SystemError("write");
    if (written > 0) at += static_cast<size_t>(written);
  }
  return {};
}

Result<pid_t> Start(const std::string& program, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGXCPU, SIGPIPE}) sigaddset(&defaults, number);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string name = program;
  std::array<char*, 2> arguments = {name.data(), nullptr};
  pid_t child = -1;
  errno = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return std::unexpected(SystemError(program.c_str()).error());
  return child;
}

// True if the child reports success (one byte) before it ends or the deadline passes.
bool Reports(int output, size_t seconds) {
  pollfd wait{.fd = output, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = poll(&wait, 1, static_cast<int>(seconds * 1000))) < 0 && errno == EINTR) {
  }
  char byte = 0;
  return ready > 0 && read(output, &byte, 1) == 1;
}

}  // namespace

Status CheckHdf5(const Buffer& file, const std::string& path) {
  FUSEBOX_ASSIGN(const std::string program, FindHelperProgram("fusebox-hdf5-check"));
  const Descriptor input(path.empty() ? memfd_create("fusebox-hdf5", MFD_CLOEXEC)
                                      : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (input.get() < 0) return SystemError(path.empty() ? "memfd_create" : "open");
  if (path.empty()) FUSEBOX_TRY(Fill(input.get(), file));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2");
  const Descriptor output(ends[0]);
  Descriptor theirs(ends[1]);
  FUSEBOX_ASSIGN(const pid_t child, Start(program, input.get(), theirs.get()));
  theirs.Close();
  const bool survived = Reports(output.get(), 3 * SecondsToRead(file.size()));
  if (!survived) kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (survived) return {};
  return Invalid(
      "a broken HDF5 file: the HDF5 library crashes, hangs or runs out of memory when it reads it");
}

}  // namespace fusebox::keras
