// SPDX-License-Identifier: Apache-2.0
#include "host/threads/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "host/base/cgroup.h"

namespace fusebox {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

uint32_t CoresOfMask() {
  cpu_set_t set;
  const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return allowed > 0 ? static_cast<uint32_t>(allowed) : std::max(1u, std::thread::hardware_concurrency());
}

// CPU time per time, from the quota and the period in microseconds. Without a quota, files have "max" or -1.
double Quota(const std::string& quota_and_period) {
  long long used = 0;
  long long of = 0;
  const int read = std::sscanf(quota_and_period.c_str(), "%lld %lld", &used, &of);
  return read == 2 && used > 0 && of > 0 ? static_cast<double>(used) / static_cast<double>(of) : kNoQuota;
}

double QuotaOfCgroups(const std::string& root) {
  const std::string cgroups = CgroupsOfProcess(root);
  double least = kNoQuota;
  for (const std::string& folder : CgroupFolders(root, cgroups, ""))
    least = std::min(least, Quota(ReadSystemFile(folder + "cpu.max")));
  for (const std::string& folder : CgroupFolders(root, cgroups, "cpu"))
    least = std::min(least, Quota(ReadSystemFile(folder + "cpu.cfs_quota_us") + " " +
                                  ReadSystemFile(folder + "cpu.cfs_period_us")));
  return least;
}

}  // namespace

// A thread that the quota stops in a loop delays the loop by up to a period, mostly 100 ms.
uint32_t AvailableCores(const std::string& root) {
  const double cores = std::min<double>(CoresOfMask(), std::floor(QuotaOfCgroups(root)));
  return static_cast<uint32_t>(std::max(1.0, cores));
}

}  // namespace fusebox
