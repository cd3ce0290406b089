// SPDX-License-Identifier: Apache-2.0
#include "host/base/buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/testing/huge_pages.h"

namespace fusebox {
namespace {

std::string TempPath(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string Text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Buffer, IsAlignedAndReadableBeyondItsEnd) {
  for (const size_t size : {0u, 1u, 63u, 64u, 4096u}) {
    const Buffer buffer = Buffer::Make(size, {});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u);
    for (size_t i = 0; i < size + kOverread; ++i) EXPECT_EQ(buffer.data()[i], std::byte{0});
  }
}

TEST(Buffer, TellsAnEmptyPayloadFromNone) {
  EXPECT_FALSE(Buffer());
  EXPECT_TRUE(Buffer::Copy({}));
}

TEST(MapFile, CanBeReadBeyondItsEndAtEverySizeAroundAPage) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const size_t size : {size_t{0}, size_t{1}, page - 17, page - 16, page - 1, page, page + 1, 2 * page}) {
    const std::string path = TempPath("mapped");
    std::ofstream(path) << std::string(size, 'x');
    const auto file = MapFile(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(Text(*file), std::string(size, 'x'));
    volatile const std::byte* data = file->data();
    for (size_t i = 0; i < kOverread; ++i) EXPECT_EQ(std::byte(data[size + i]), std::byte{0});
  }
}

// Whether a page is in this process's memory: bit 63 of its word in pagemap.
bool IsPresent(const std::byte* address) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t word = 0;
  const auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(address) / page * sizeof word);
  EXPECT_EQ(pread(map, &word, sizeof word, at), static_cast<ssize_t>(sizeof word));
  close(map);
  return word >> 63 != 0;
}

TEST(MapFile, ItsPagesAreReleasedAndComeBack) {
  constexpr size_t kSize = size_t{1} << 20;
  const std::string path = TempPath("large");
  std::ofstream(path) << std::string(kSize, 'x');
  const auto file = MapFile(path);
  ASSERT_TRUE(file) << file.error().message;
  const Buffer half = file->Slice(kSize / 2, kSize / 2);
  ASSERT_EQ(Text(*file), std::string(kSize, 'x'));
  ASSERT_TRUE(IsPresent(file->data()));
  half.Release();
  EXPECT_FALSE(IsPresent(half.data()));
  EXPECT_TRUE(IsPresent(file->data()));
  half.ReleaseFile();
  EXPECT_FALSE(IsPresent(file->data()));
  EXPECT_EQ(Text(*file), std::string(kSize, 'x'));
  Buffer::Make(kSize, {}).ReleaseFile();  // no file, no effect
}

TEST(MapFile, NamesThePathAndTheReason) {
  const auto missing = MapFile("/nonexistent/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message, "/nonexistent/file: No such file or directory");
  EXPECT_EQ(MapFile(testing::TempDir()).error().code, Code::kInvalid);
}

TEST(AtomicFile, LeavesTheOldContentUntilItCommits) {
  const std::string folder = TempPath("atomic");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/out";
  ASSERT_TRUE(WriteFile(path, Bytes("old")));
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Append(Bytes("new")));
    EXPECT_EQ(*ReadTextFile(path), "old");
    ASSERT_TRUE(file->Commit());
    EXPECT_EQ(*ReadTextFile(path), "new");
  }
  {
    auto abandoned = AtomicFile::Create(path);
    ASSERT_TRUE(abandoned->Append(Bytes("never")));
  }
  EXPECT_EQ(*ReadTextFile(path), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a temporary file is left";
}

TEST(AtomicFile, GivesTheFileTheRightsOfAnyNewFile) {
  const std::string path = TempPath("rights");
  std::filesystem::remove(path);
  const mode_t mask = umask(022);
  ASSERT_TRUE(WriteFile(path, Bytes("x")));
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST(AtomicFile, WritesWhatALinkPointsTo) {
  const std::string target = TempPath("end_of_link"), link = TempPath("link");
  for (const auto& path : {target, link}) std::filesystem::remove(path);
  std::filesystem::create_symlink("end_of_link", link);
  for (const char* content : {"new", "newer"}) {  // first there is no target
    ASSERT_TRUE(WriteFile(link, Bytes(content)));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_FALSE(std::filesystem::is_symlink(target));
    EXPECT_EQ(*ReadTextFile(target), content);
  }
}

TEST(AtomicFile, WritesToAPipeAndLeavesIt) {
  const std::string pipe = TempPath("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = *ReadTextFile(pipe); });
  const Status status = WriteFile(pipe, Bytes("through"));
  reader.join();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(read, "through");
  EXPECT_EQ(std::filesystem::status(pipe).type(), std::filesystem::file_type::fifo);
}

TEST(AtomicFile, RefusesAFolder) {
  const Status status = WriteFile(testing::TempDir(), Bytes("x"));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("Is a directory"), std::string::npos) << status.error().message;
}

TEST(AtomicFile, RefusesAFolderThatIsNotThere) {
  const Status status = WriteFile("/nonexistent/out", Bytes("x"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "/nonexistent/out: cannot be written: No such file or directory");
}

TEST(Buffer, OfSomeSizeIsInHugePages) {
  for (const size_t size : {size_t{9} << 20, size_t{1} << 20}) {
    const Buffer buffer = Buffer::Make(size, [](std::span<std::byte> to) { to.back() = std::byte{7}; });
    const auto asks = AsksForHugePages(buffer.data() + size / 2);
    if (!asks) GTEST_SKIP() << "this system does not show the flags of memory in /proc/self/smaps";
    EXPECT_EQ(*asks, size > size_t{4} << 20) << size;
  }
}

}  // namespace
}  // namespace fusebox
