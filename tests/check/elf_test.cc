// SPDX-License-Identifier: Apache-2.0
// The ELF reader runs in the calling process, on any file.
#include "check/elf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "host/base/buffer.h"

namespace fusebox::check {
namespace {

std::string Library() { return ReadTextFile(FUSEBOX_PLANTED "/ExtraSymbol/planted.so").value_or(""); }

Result<ElfFacts> Read(const std::string& bytes) {
  const std::string path = testing::TempDir() + "damaged.so";
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadElf(path);
}

TEST(ElfReader, ReadsExportsAndNeededLibraries) {
  const auto facts = Read(Library());
  ASSERT_TRUE(facts) << facts.error().message;
  size_t entries = 0;
  for (const ElfFacts::Symbol& symbol : facts->exports) entries += symbol.name == "fusebox_entry_v1";
  EXPECT_EQ(entries, 1U);
  EXPECT_FALSE(facts->needed.empty());
  EXPECT_FALSE(facts->executable_stack);
}

TEST(ElfReader, SurvivesFilesThatAreCutOff) {
  const std::string library = Library();
  ASSERT_GT(library.size(), 4096U);
  for (size_t size = 0; size < library.size(); size += 1 + size / 16) (void)Read(library.substr(0, size));
  const auto facts = Read(library.substr(0, 64));
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message.find("outside of the file"), std::string::npos) << facts.error().message;
}

TEST(ElfReader, SurvivesFlippedBytes) {
  const std::string library = Library();
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = library;
    // Most of what the reader follows is in the headers at the front.
    for (int k = 0; k < 4; ++k)
      damaged[random() % (k < 2 ? 1024 : damaged.size())] = static_cast<char>(random());
    (void)Read(damaged);
  }
}

}  // namespace
}  // namespace fusebox::check
