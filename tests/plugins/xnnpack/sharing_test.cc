// SPDX-License-Identifier: Apache-2.0
// What models and processes share: bytes on disk, and memory.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/plugins/xnnpack/said.h"

namespace fusebox::xnnpack_test {
namespace {

// Layers in a row; `seeds` are of their weights.
Build Layers(std::vector<uint32_t> seeds, int64_t size) {
  return [=] {
    Net net;
    ValueId x = net.Input(DType::kF32, {2, size});
    for (const uint32_t seed : seeds) {
      const ValueId w = net.Const<float>(DType::kF32, {size, size},
                                         Noise<float>(static_cast<size_t>(size * size), seed, -0.1, 0.1));
      x = net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {2, size});
    }
    return net.Take({x});
  };
}

uint64_t SegmentBytes(const std::string& cache) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache))
    if (entry.path().extension() == ".fbpk") bytes += entry.file_size();
  return bytes;
}

TEST(Models, ThatShareNineTenthsOfTheirWeightsTakeATenthMore) {
  const std::string cache = FreshCache();
  std::vector<uint32_t> seeds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Build first = Layers(seeds, 192);
  seeds[4] = 11;
  const Build second = Layers(seeds, 192);
  const Ran plain = RunNet(second());
  ASSERT_EQ(plain.error, "");
  ASSERT_EQ(RunNet(first(), cache).error, "");
  const uint64_t one = SegmentBytes(cache);
  const Said said;
  ExpectSame(plain.outputs, RunNet(second(), cache).outputs);
  const uint64_t packed = 10u * 192 * 192 * 4;
  EXPECT_GE(one, packed);
  EXPECT_LE(one, packed + packed / 20);
  EXPECT_LE(SegmentBytes(cache), one + one * 11 / 100);
  EXPECT_GE(said.bytes().found, packed * 9 / 10);
  std::filesystem::remove_all(cache);
}

// PSS of the mappings of files that end so, in bytes.
uint64_t PssOf(const std::string& suffix) {
  std::ifstream maps("/proc/self/smaps");
  uint64_t kilobytes = 0;
  bool in = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') != std::string::npos && line.find(" kB") == std::string::npos)
      in = line.ends_with(suffix);
    if (in && line.starts_with("Pss:")) kilobytes += std::stoull(line.substr(4));
  }
  return kilobytes * 1024;
}

// A model in a file, run by XNNPACK or by kernels: how much of the file is in this process's memory
// afterwards.
uint64_t ResidentAfterARun(const std::string& path, const std::vector<Config::Delegate>& delegates) {
  const auto model = Model::Open(path, {.registry = XnnpackRegistry(), .delegates = delegates});
  EXPECT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model);
  EXPECT_TRUE(session && (*session)->Run());
  return PssOf(std::filesystem::path(path).filename());
}

TEST(Models, LeaveMemoryOnceTheirWeightsArePacked) {
  const std::string path = ::testing::TempDir() + "/packed_away.tflite";
  const Status written = tflite::WriteFile(*Layers({1, 2, 3, 4}, 512)(), path);
  ASSERT_TRUE(written) << written.error().message;
  constexpr uint64_t kWeights = 4u * 512 * 512 * 4;
  EXPECT_GE(ResidentAfterARun(path, {}), kWeights);
  EXPECT_LE(ResidentAfterARun(path, {AllOnXnnpack()}), kWeights / 8);
  std::filesystem::remove(path);
}

// Runs the net from the cache; then says so, waits until all have, tells its share of the packed weights, and
// waits again.
int Holder(const Build& net, const std::string& cache, int to_parent, int all_run, int all_measured) {
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("weight_cache_path", cache);
  const auto model =
      Model::FromModule(net(), {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
  if (!model) return 1;
  auto session = Session::Create(*model);
  if (!session || !(*session)->Run()) return 2;
  uint64_t word = 0;
  if (write(to_parent, &word, sizeof word) != sizeof word || read(all_run, &word, 1) != 1) return 3;
  word = PssOf(".fbpk");
  if (write(to_parent, &word, sizeof word) != sizeof word || read(all_measured, &word, 1) != 1) return 4;
  return 0;
}

TEST(Processes, ShareTheMemoryOfPackedWeights) {
  constexpr int kProcesses = 4;
  const std::string cache = FreshCache();
  const Build net = Layers({1, 2, 3, 4}, 512);
  ASSERT_EQ(RunNet(net(), cache).error, "");
  const uint64_t packed = SegmentBytes(cache);
  int up[2], run[2], measured[2];
  ASSERT_TRUE(pipe(up) == 0 && pipe(run) == 0 && pipe(measured) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(Holder(net, cache, up[1], run[0], measured[0]));
    children.push_back(child);
  }
  close(up[1]);  // so that a process that fails is noticed
  uint64_t word = 0;
  for (int i = 0; i < kProcesses; ++i)
    EXPECT_EQ(read(up[0], &word, sizeof word), static_cast<ssize_t>(sizeof word));
  EXPECT_EQ(write(run[1], "gogo", kProcesses), kProcesses);
  for (int i = 0; i < kProcesses; ++i) {
    EXPECT_EQ(read(up[0], &word, sizeof word), static_cast<ssize_t>(sizeof word));
    EXPECT_GE(word, packed * 24 / 100);
    EXPECT_LE(word, packed * 27 / 100);
  }
  EXPECT_EQ(write(measured[1], "gogo", kProcesses), kProcesses);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const int end : {up[0], run[0], run[1], measured[0], measured[1]}) close(end);
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
