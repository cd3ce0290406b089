// SPDX-License-Identifier: Apache-2.0
// Every test executable: what its tests write below testing::TempDir() is gone when it ends, and two that run
// at once never meet there.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

// A folder of this run's own. Processes that the tests start find it as TMPDIR.
class Scratch {
 public:
  Scratch() : path_((std::filesystem::temp_directory_path() / "fusebox-test-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr || chmod(path_.c_str(), 0755) != 0) {  // some tests are another user
      perror(path_.c_str());
      exit(1);
    }
    setenv("TEST_TMPDIR", (path_ + "/").c_str(), 1);
    setenv("TMPDIR", path_.c_str(), 1);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  const Scratch scratch;
  return RUN_ALL_TESTS();
}
