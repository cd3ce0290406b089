// SPDX-License-Identifier: Apache-2.0
// Another build of XNNPACK, and the same build on another CPU. Each start is a process of its own: this
// program again, with a copy of the library whose build id is another, or with CPU features masked before the
// library looks at them.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "plugins/math/simd/cpu.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/plugins/xnnpack/said.h"

namespace fusebox::xnnpack_test {
namespace {

constexpr const char* kCache = "FUSEBOX_TEST_CACHE";
constexpr const char* kMask = "FUSEBOX_TEST_MASK";  // bytes of cpuinfo_isa, by commas
constexpr const char* kOut = "FUSEBOX_TEST_OUT";

// An i8 layer, whose packing hangs on VNNI, and an f32 one, whose packing does not.
std::unique_ptr<Module> BothKinds() {
  Net net;
  const ValueId x = net.Input(DType::kI8, {4, 64}, {0.05f, 3}), y = net.Input(DType::kF32, {4, 64});
  const ValueId w =
      net.Const<int8_t>(DType::kI8, {64, 64}, Noise<int8_t>(64 * 64, 1, -127, 128), {{0.02f, 0}});
  const ValueId b = net.Const<int32_t>(DType::kI32, {64}, std::vector<int32_t>(64, 100), {{1e-3f, 0}});
  const ValueId v = net.Const<float>(DType::kF32, {64, 64}, Noise<float>(64 * 64, 2, -1, 1));
  return net.Take({net.Add(Op::kFullyConnected, {x, w, b}, DType::kI8, {4, 64}, {}, {0.3f, -7}),
                   net.Add(Op::kFullyConnected, {y, v, kNoValue}, DType::kF32, {4, 64})});
}

// cpuinfo's features are one byte each.
uint8_t* CpuFeatures() {
  void* const library = dlopen("libcpuinfo.so.0", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  const auto initialize = reinterpret_cast<bool (*)()>(dlsym(library, "cpuinfo_initialize"));
  auto* const features = static_cast<uint8_t*>(dlsym(library, "cpuinfo_isa"));
  return initialize != nullptr && initialize() ? features : nullptr;
}

// What the processes run, in place of tests.
class OneStart : public ::testing::Environment {
 public:
  void SetUp() override {
    if (getenv(kOut) == nullptr) return;
    std::stringstream mask(getenv(kMask));
    for (std::string byte; std::getline(mask, byte, ',');) CpuFeatures()[std::stoi(byte)] = 0;
    const Said said;
    const Ran ran = RunNet(BothKinds(), getenv(kCache));
    {
      std::ofstream out(getenv(kOut), std::ios::binary);
      out << said.text() << '\n' << "outputs:";
      for (const Tensor& t : ran.outputs)
        out.write(reinterpret_cast<const char*>(t.data.data()), static_cast<std::streamsize>(t.data.size()));
    }
    if (!ran.error.empty()) fprintf(stderr, "%s\n", ran.error.c_str());
    _exit(ran.error.empty() ? 0 : 1);
  }
};
[[maybe_unused]] const auto* const kOneStart = ::testing::AddGlobalTestEnvironment(new OneStart);

struct Start {
  WeightBytes bytes;
  std::string outputs;
};

// `library`: a folder in which the loader looks first, or a file that it loads first.
Start StartWith(const std::string& cache, const std::string& library, const std::string& mask = "") {
  const std::string out = ::testing::TempDir() + "/xnnpack-upgrade-" + std::to_string(getpid());
  const pid_t child = fork();
  if (child == 0) {
    setenv(kCache, cache.c_str(), 1);
    setenv(kMask, mask.c_str(), 1);
    setenv(kOut, out.c_str(), 1);
    const bool file = std::filesystem::is_regular_file(library);
    if (!library.empty()) setenv(file ? "LD_PRELOAD" : "LD_LIBRARY_PATH", library.c_str(), 1);
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execl("/proc/self/exe", "test", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::ifstream file(out, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(out);
  const size_t outputs = text.find("outputs:");
  return {ReadWeightBytes(text.substr(0, outputs)), outputs == std::string::npos ? "" : text.substr(outputs)};
}

std::string PathOfXnnpack() {
  std::string path;
  void* const plugin = dlopen(FUSEBOX_XNNPACK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (std::string_view(info->dlpi_name).find("libXNNPACK") != std::string_view::npos)
          *static_cast<std::string*>(out) = info->dlpi_name;
        return 0;
      },
      &path);
  return path;
}

// A folder with the library under another build id; "" when it has none.
std::string WithBuildId(const std::string& library, char id) {
  std::ifstream in(library, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string mark("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0",
                         16);  // a note of 20 bytes, as the linker writes it
  const size_t at = bytes.find(mark);
  if (at == std::string::npos) return "";
  bytes[at + mark.size()] = static_cast<char>(bytes[at + mark.size()] ^ id);
  const std::string folder = ::testing::TempDir() + "/xnnpack-build-" + std::to_string(id);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + std::filesystem::path(library).filename().string(), std::ios::binary) << bytes;
  return folder;
}

uint64_t SegmentBytes(const std::string& cache) {
  if (std::filesystem::is_regular_file(cache)) return std::filesystem::file_size(cache);
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache))
    if (entry.path().extension() == ".fbpk") bytes += entry.file_size();
  return bytes;
}

TEST(Upgrade, AnotherLibraryBuildPacksAnewAndTheCacheDoesNotGrow) {
  const std::string library = PathOfXnnpack();
  if (library.empty() || WithBuildId(library, 1).empty())
    GTEST_SKIP() << "XNNPACK is no shared library with a build id here";
  const std::string folder = FreshCache();
  std::filesystem::create_directories(folder);
  for (const std::string& cache : {folder + "one.fbpk", folder + "many/"}) {
    const Start first = StartWith(cache, "");
    EXPECT_GT(first.bytes.packed, 0u);
    const uint64_t size = SegmentBytes(cache);
    for (const char id : {1, 2, 3}) {
      const std::string upgraded = WithBuildId(library, id);
      const Start cold = StartWith(cache, upgraded);
      EXPECT_EQ(cold.bytes.found, 0u);
      EXPECT_EQ(cold.bytes.packed, first.bytes.packed);
      EXPECT_EQ(cold.outputs, first.outputs);
      EXPECT_EQ(SegmentBytes(cache), size);
      const Start warm = StartWith(cache, upgraded);
      EXPECT_EQ(warm.bytes.packed, 0u);
      EXPECT_EQ(warm.outputs, first.outputs);
      std::filesystem::remove_all(upgraded);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(Upgrade, VersionsShareACache) {
  const std::string library = PathOfXnnpack();
  if (library.empty()) GTEST_SKIP() << "XNNPACK is no shared library here";
  const std::string folder = FreshCache();
  std::filesystem::create_directories(folder);
  const std::string other = folder + "libXNNPACK.so.0.20990101";
  std::filesystem::copy_file(library, other);
  const std::string cache = folder + "many/";
  const Start first = StartWith(cache, "");
  EXPECT_GT(first.bytes.packed, 0u);
  const Start second = StartWith(cache, other);
  EXPECT_EQ(second.bytes.packed, first.bytes.packed);
  EXPECT_EQ(second.outputs, first.outputs);
  for (const std::string& version : {std::string(), other}) {
    const Start warm = StartWith(cache, version);
    EXPECT_EQ(warm.bytes.packed, 0u) << version;
    EXPECT_EQ(warm.bytes.found, first.bytes.packed) << version;
    EXPECT_EQ(warm.outputs, first.outputs) << version;
  }
  std::filesystem::remove_all(folder);
}

#if defined(__x86_64__)
const bool kHasVnni = FUSEBOX_CPU_HAS(AVX512_VNNI), kHasAvx512 = FUSEBOX_CPU_HAS(AVX512VL);
#else
constexpr bool kHasVnni = false, kHasAvx512 = false;
#endif

// Where the features stand in cpuinfo_isa, of the version that this was measured with; empty: they are
// elsewhere, or the CPU has none of them.
std::string Present(const std::vector<int>& bytes, bool has) {
  const uint8_t* const features = has ? CpuFeatures() : nullptr;
  std::string mask;
  for (const int byte : bytes)
    if (features != nullptr && features[byte] == 1) mask += (mask.empty() ? "" : ",") + std::to_string(byte);
  return mask;
}

TEST(Upgrade, OneChangedCanaryReplacesWhatItStandsForAndNothingElse) {
  const std::string vnni = Present({23, 41}, kHasVnni);
  if (vnni.empty()) GTEST_SKIP() << "this CPU has no VNNI to hide, or cpuinfo does not export what it found";
  const std::string folder = FreshCache();
  std::filesystem::create_directories(folder);
  for (const std::string& cache : {folder + "one.fbpk", folder + "many/"}) {
    const Start plain = StartWith("", "", vnni), whole = StartWith(cache, "");
    uint64_t size = 0;
    for (int upgrade = 0; upgrade < 3; ++upgrade) {
      const Start masked = StartWith(cache, "", vnni);
      EXPECT_GT(masked.bytes.packed, 0u) << "the i8 layer";
      EXPECT_GT(masked.bytes.found, 0u) << "the f32 layer";
      EXPECT_EQ(masked.outputs, plain.outputs);
      if (size == 0) size = SegmentBytes(cache);
      EXPECT_LE(SegmentBytes(cache), size);
      EXPECT_EQ(StartWith(cache, "", vnni).bytes.packed, 0u);
      EXPECT_EQ(StartWith(cache, "").outputs, whole.outputs);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(Upgrade, TheCacheOfAnotherCpuMissesAndIsRight) {
  const std::string wide = Present({29, 33, 34, 35, 41, 23}, kHasAvx512);
  if (wide.empty())
    GTEST_SKIP() << "this CPU has no AVX-512 to hide, or cpuinfo does not export what it found";
  const std::string cache = FreshCache();
  const Start plain = StartWith("", "", wide), whole = StartWith(cache, "");
  const Start narrow = StartWith(cache, "", wide);
  EXPECT_EQ(narrow.bytes.found, 0u);
  EXPECT_GT(narrow.bytes.packed, 0u);
  EXPECT_EQ(narrow.outputs, plain.outputs);
  EXPECT_EQ(StartWith(cache, "").outputs, whole.outputs);
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
