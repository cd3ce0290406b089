// SPDX-License-Identifier: Apache-2.0
// The control groups of this process, which limit its memory and its CPU time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

// Returns what a file of /proc or /sys has; empty if it cannot be read. Streams take several times as long.
std::string ReadSystemFile(const std::string& path);

// Returns /proc/self/cgroup, for CgroupFolders. Reading it waits for a lock of the kernel.
std::string CgroupsOfProcess(const std::string& root);

// Folders of the process's cgroup and of the cgroups around it, innermost first, each with a slash at its
// end. They may be missing. `controller`: "memory" or "cpu" of version 1; empty: version 2. `root` is "/", or
// a folder with copies of files in /proc and /sys.
std::vector<std::string> CgroupFolders(const std::string& root, std::string_view cgroups,
                                       std::string_view controller);

}  // namespace fusebox
