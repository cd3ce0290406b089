// SPDX-License-Identifier: Apache-2.0
// Cores that a process may use at once: threads beyond them wait for each other.
#pragma once

#include <cstdint>
#include <string>

namespace fusebox {

// At least 1: the smallest of the CPUs in the affinity mask and the CPU quotas of the process's cgroups
// (version 2: cpu.max, version 1: cpu.cfs_quota_us), rounded down. `root` is "/", or a folder with copies of
// files in /proc and /sys.
uint32_t AvailableCores(const std::string& root);

}  // namespace fusebox
