// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "tests/host/tflite/models.h"
#include "tests/testing/refusal.h"

namespace fusebox::tflite {
namespace {

std::string WhyNot(std::string_view bytes) {
  const auto module = ReadBytes(bytes);
  return module ? std::string() : module.error().message;
}

// Reads, and if that succeeds writes and reads again. Each succeeds or blames the input. Returns whether the
// file was read.
bool Try(std::string_view bytes) {
  const auto module = ReadBytes(bytes);
  EXPECT_TRUE(SucceedsOrBlamesInput(module));
  if (!module) return false;
  EXPECT_NE(ToText(**module), "");
  const auto written = Write(**module);
  EXPECT_TRUE(SucceedsOrBlamesInput(written));
  if (written) {
    EXPECT_TRUE(ReadBytes(*written)) << WhyNot(*written);
  }
  return true;
}

// Tries damaged copies of a file: some are refused.
void Maul(const std::string& good, int flips, unsigned seed) {
  std::mt19937 random(seed);
  int read = 0, tried = 0;
  for (int i = 0; i < flips; ++i) {
    std::string bad = good;
    for (int n = 0; n < 1 + i % 3; ++n) {
      const size_t at = random() % std::min<size_t>(bad.size(), 20000);
      bad[at] = static_cast<char>(bad[at] ^ 1 << random() % 8);
    }
    read += Try(bad), ++tried;
  }
  const size_t step = std::max<size_t>(1, good.size() / 300);
  for (size_t size = 0; size < good.size(); size += step) read += Try(good.substr(0, size)), ++tried;
  EXPECT_LT(read, tried) << "no damage is seen";
}

TEST(BadInput, IsRefusedWithItsName) {
  EXPECT_EQ(WhyNot(""), "bytes: the file is empty");
  EXPECT_EQ(WhyNot("TFL3"), "bytes: not a .tflite file: bytes 4 to 7 are not \"TFL3\"");
  EXPECT_EQ(WhyNot(std::string("\x10\0\0\0TFL3", 8)),
            "bytes: damaged or cut off: its tables do not hold together");
  EXPECT_EQ(ReadFile("/nonexistent.tflite").error().message,
            "/nonexistent.tflite: No such file or directory");
}

TEST(BadInput, OtherFormatsAreNamed) {
  EXPECT_EQ(WhyNot("\x89HDF\r\n\x1a\n and more"),
            "bytes: not a .tflite file but an HDF5 file; convert a Keras model (.h5) first: fusebox convert "
            "MODEL.h5 -o MODEL.tflite");
  EXPECT_EQ(
      WhyNot("PK\x03\x04 and more"),
      "bytes: not a .tflite file but a zip archive; convert a Keras model (.keras) first: fusebox convert "
      "MODEL.keras -o MODEL.tflite; unpack other archives, such as .task bundles");
  EXPECT_EQ(WhyNot("PK\x03 and more"), "bytes: not a .tflite file: bytes 4 to 7 are not \"TFL3\"");
}

TEST(BadInput, CutOffAnywhereIsRefused) {
  const std::string good = *Write(*Everything());
  // Padding, and no table, lies in the last bytes.
  for (size_t size = 0; size + 64 < good.size(); ++size) EXPECT_NE(WhyNot(good.substr(0, size)), "") << size;
}

TEST(BadInput, WithAnyBitFlippedDoesNotCrash) {
  const std::string good = *Write(*Everything());
  EXPECT_TRUE(Try(good)) << WhyNot(good);
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ 1 << i % 8);
    Try(bad);
  }
  Maul(good, 3000, 1);
}

TEST(BadInput, RecursiveSubgraphsAreRefused) {
  auto module = Everything();
  std::string good = *Write(*module);
  // The loop's options are its only table of two subgraph numbers: 1 and 2 in a row.
  const std::string pattern("\x02\0\0\0\x01\0\0\0", 8), other("\x01\0\0\0\x02\0\0\0", 8);
  bool refused = false;
  for (const std::string& wanted : {pattern, other}) {
    for (size_t at = good.find(wanted); at != std::string::npos; at = good.find(wanted, at + 1)) {
      std::string bad = good;
      bad.replace(at, 8, std::string(8, '\0'));
      refused = refused || WhyNot(bad).find("recursive") != std::string::npos ||
                WhyNot(bad).find("differ in number") != std::string::npos;
    }
  }
  EXPECT_TRUE(refused);
}

TEST(BadInput, RealFilesMauledDoNotCrash) {
  const auto files = RealFiles();
  if (files.empty()) GTEST_SKIP() << "FUSEBOX_MODELS is not set: no real files";
  int mauled = 0, whole = 0;
  for (const std::string& path : files) {
    if (std::filesystem::file_size(path) > 60000 || ++mauled > 40) continue;
    const auto file = MapFile(path);
    ASSERT_TRUE(file);
    const std::string bytes(reinterpret_cast<const char*>(file->data()), file->size());
    whole += Try(bytes);  // a few are broken as they are
    Maul(bytes, 60, static_cast<unsigned>(mauled));
  }
  EXPECT_GE(whole * 10, std::min(mauled, 40) * 9);
  std::printf("%d real files mauled\n", std::min(mauled, 40));
}

}  // namespace
}  // namespace fusebox::tflite
