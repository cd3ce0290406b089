// SPDX-License-Identifier: Apache-2.0
#include "host/threads/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace fusebox {
namespace {

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

// A folder in place of "/".
class Cores : public testing::Test {
 protected:
  Cores() { std::filesystem::remove_all(root); }
  // Most of what the quotas may allow here.
  static uint32_t Mask() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return static_cast<uint32_t>(CPU_COUNT(&set));
  }
  const std::string root = testing::TempDir() + "cores/";
};

TEST_F(Cores, AreThoseOfTheMaskWithoutQuota) {
  EXPECT_EQ(AvailableCores(root), Mask());
  WriteFile(root + "proc/self/cgroup", "0::/a\n");
  WriteFile(root + "sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(AvailableCores(root), Mask());
  WriteFile(root + "sys/fs/cgroup/a/cpu.max", "100000000 100000\n");  // a thousand
  EXPECT_EQ(AvailableCores(root), Mask());
}

TEST_F(Cores, AQuotaOfVersion2IsRoundedDown) {
  WriteFile(root + "proc/self/cgroup", "0::/a/b\n");
  for (const char* quota : {"50000 100000\n", "199999 100000\n", "1000 100000\n"}) {
    WriteFile(root + "sys/fs/cgroup/a/b/cpu.max", quota);
    EXPECT_EQ(AvailableCores(root), 1u) << quota;
  }
}

TEST_F(Cores, QuotasOfTheCgroupsAroundCount) {
  WriteFile(root + "proc/self/cgroup", "0::/a/b\n");
  WriteFile(root + "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  WriteFile(root + "sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(AvailableCores(root), 1u);
  std::filesystem::remove(root + "sys/fs/cgroup/a/cpu.max");
  WriteFile(root + "sys/fs/cgroup/cpu.max", "150000 100000\n");  // as in a container
  EXPECT_EQ(AvailableCores(root), 1u);
}

TEST_F(Cores, QuotasOfVersion1Count) {
  WriteFile(root + "proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/c\n0::/\n");
  WriteFile(root + "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  WriteFile(root + "sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AvailableCores(root), Mask());
  WriteFile(root + "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "120000\n");
  EXPECT_EQ(AvailableCores(root), 1u);
  WriteFile(root + "sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "0\n");
  EXPECT_EQ(AvailableCores(root), Mask());
}

TEST_F(Cores, DamagedFilesAreNoQuota) {
  WriteFile(root + "proc/self/cgroup", "nonsense\n0:/\n");
  for (const char* text : {"", "words\n", "100000\n", "-5 100000\n", "nan 1\n"}) {
    WriteFile(root + "sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(AvailableCores(root), Mask()) << text;
  }
}

}  // namespace
}  // namespace fusebox
