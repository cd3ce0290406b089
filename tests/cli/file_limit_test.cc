// SPDX-License-Identifier: Apache-2.0
// Files that outgrow `ulimit -f`: an error with the file and the reason, and no part of it is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The command under a limit of 1000 bytes.
Finished Limited(const std::vector<std::string>& arguments) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  Finished done = Fusebox(arguments);
  setrlimit(RLIMIT_FSIZE, &before);
  return done;
}

class FileLimit : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(out_ = Path("out")); }
  void Refused(const Finished& done, const std::string& file) const {
    EXPECT_EQ(done.status, 2) << done.err;
    EXPECT_THAT(done.err, HasSubstr(out_ + "/" + file +
                                    ": cannot be written: File too large; raise the limit of ulimit -f"));
    EXPECT_THAT(FilesBelow(out_), IsEmpty());
  }
  std::string out_;
};

TEST_F(FileLimit, StopsAConversion) {
  const std::string sample = WriteSample("dense");
  Refused(Limited({"convert", sample, "-o", out_ + "/m.tflite", "--batch", "1"}), "m.tflite");
}

TEST_F(FileLimit, StopsTheFilesOfARun) {
  const std::string model = WriteAddModel("add.tflite", 1);
  Refused(Limited({"run", model, "--shape", "x=200,3", "--output-dir", out_}), "in0.npy");
  Refused(Limited({"run", model, "--trace", out_ + "/trace.json"}), "trace.json");
}

TEST_F(FileLimit, StopsAPage) {
  const std::string model = WriteAddModel("add.tflite", 1);
  Refused(Limited({"inspect", model, "--html", out_ + "/page.html"}), "page.html");
}

// The result on stdout, when that is a file.
TEST_F(FileLimit, StopsAListing) {
  const Finished done = Limited({"plugin", "inspect", "fusebox.cpu"});
  EXPECT_EQ(done.out.size(), 1000u);
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.err, "fusebox: stdout: File too large\n");
}

}  // namespace
}  // namespace fusebox::cli_test
