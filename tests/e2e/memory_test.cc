// SPDX-License-Identifier: Apache-2.0
// What a conversion keeps in memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "samples/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

// The most that was resident in a process of its own that did `work`, mapped files included.
size_t PeakOf(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  rusage usage = {};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

// The weights are read, transposed, written and read back: one copy of them at a time is in memory.
TEST(Memory, OfAConversionStaysNearTheSizeOfItsOutput) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is many times the model's";
#endif
  const std::string dir = TestDir() + "/stack", file = dir + ".tflite";
  PeakOf([&] { return samples::WriteDenseStack(dir, 1, 8, 2048).has_value(); });
  const auto convert = [&] {
    auto conversion = converter::FromSavedModel(dir);
    conversion.options.registry = *Plugins({});
    const auto converted = conversion.Convert();
    return converted && converted->Write(file);
  };
  const size_t least = PeakOf([] { return Plugins({}).has_value(); });
  const size_t peak = PeakOf(convert), output = std::filesystem::file_size(file);
  EXPECT_GE(output, size_t{8} * 2048 * 2048 * 4);
  EXPECT_LE(peak - least, output + output / 4);
  std::filesystem::remove_all(TestDir());
}

}  // namespace
}  // namespace fusebox::testing
