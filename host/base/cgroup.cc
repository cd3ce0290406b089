// SPDX-License-Identifier: Apache-2.0
#include "host/base/cgroup.h"

#include <fstream>

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
std::string CgroupPath(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (Lists(std::string_view(line).substr(first + 1, second - first - 1), controller))
      return line.substr(second + 1);
  }
  return "/";
}

}  // namespace

std::vector<std::string> CgroupFolders(const std::string& root, std::string_view controller) {
  std::string mount = root + "sys/fs/cgroup";
  if (!controller.empty()) mount += "/" + std::string(controller);
  std::vector<std::string> folders;
  std::string path = CgroupPath(root, controller);
  for (size_t slash = path.size(); slash != std::string::npos; slash = path.rfind('/')) {
    path.resize(slash);
    folders.push_back(mount + path + "/");
  }
  return folders;
}

}  // namespace fusebox
