// SPDX-License-Identifier: Apache-2.0
#include "host/base/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace fusebox {
namespace {

// "cpu" is one of "cpu,cpuacct".
bool Lists(std::string_view controllers, std::string_view controller) {
  if (controller.empty()) return controllers.empty();
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == controller) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// The cgroup's path of this controller: "0::/a/b" in version 2, "5:memory:/a/b" in version 1.
std::string CgroupPath(std::string_view cgroups, std::string_view controller) {
  while (!cgroups.empty()) {
    const size_t end = std::min(cgroups.find('\n'), cgroups.size());
    const std::string_view line = cgroups.substr(0, end);
    cgroups.remove_prefix(std::min(end + 1, cgroups.size()));
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (Lists(line.substr(first + 1, second - first - 1), controller))
      return std::string(line.substr(second + 1));
  }
  return "/";
}

}  // namespace

std::string ReadSystemFile(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return text;
  std::array<char, 4096> block;
  for (;;) {
    const ssize_t count = read(fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(block.data(), static_cast<size_t>(count));
  }
  close(fd);
  return text;
}

std::string CgroupsOfProcess(const std::string& root) { return ReadSystemFile(root + "proc/self/cgroup"); }

std::vector<std::string> CgroupFolders(const std::string& root, std::string_view cgroups,
                                       std::string_view controller) {
  std::string mount = root + "sys/fs/cgroup";
  if (!controller.empty()) mount += "/" + std::string(controller);
  std::vector<std::string> folders;
  std::string path = CgroupPath(cgroups, controller);
  if (path.ends_with('/')) path.pop_back();
  for (size_t slash = path.size(); slash != std::string::npos; slash = path.rfind('/')) {
    path.resize(slash);
    folders.push_back(mount + path + "/");
  }
  return folders;
}

}  // namespace fusebox
