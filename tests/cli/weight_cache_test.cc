// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;

Finished RunNet(std::vector<std::string> more) {
  static const std::string kModel = [] {
    const std::string path = Path("net.tflite");
    EXPECT_EQ(Fusebox({"convert", WriteSample("conv_classifier"), "-o", path, "--batch", "1"}).status, 0);
    return path;
  }();
  std::vector<std::string> arguments = {"run", kModel, "--explain", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Fusebox(arguments);
}

TEST(WeightCache, KeepsPackedWeightsForTheNextRun) {
  const std::string xnnpack = PluginFolder("fusebox.xnnpack"), cache = Path("cache/");
  const Finished without = RunNet({"--plugin", xnnpack});
  ASSERT_EQ(without.status, 0) << without.err;
  const Finished first = RunNet({"--plugin", xnnpack, "--weight-cache", cache});
  ASSERT_EQ(first.status, 0) << first.err;
  const auto files = FilesBelow(cache + "segments");
  EXPECT_THAT(files, Contains(EndsWith(".fbpk")));
  const Finished second = RunNet({"--plugin", xnnpack, "--weight-cache", cache});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(FilesBelow(cache + "segments"), files);
  EXPECT_EQ(second.Json()["outputs"], without.Json()["outputs"]);
  EXPECT_EQ(first.Json()["outputs"], without.Json()["outputs"]);
}

TEST(WeightCache, IsNeverPutInThePlaceOfTheModel) {
  const std::string model = Path("own.tflite");
  ASSERT_EQ(Fusebox({"convert", WriteSample("conv_classifier"), "-o", model, "--batch", "1"}).status, 0);
  for (int run = 0; run < 2; ++run) {
    const Finished done =
        Fusebox({"run", model, "--plugin", PluginFolder("fusebox.xnnpack"), "--weight-cache", model});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("is not a weight cache"));
  }
  EXPECT_FALSE(std::filesystem::exists(model + ".bad"));
  EXPECT_FALSE(std::filesystem::exists(model + ".d"));
}

TEST(WeightCache, OfAConfigurationLiesBesideIt) {
  const std::string config = Path("conf/fusebox.json");
  std::filesystem::create_directory(Path("conf"));
  std::ofstream(config)
      << R"({"delegates": [{"name": "xnnpack", "options": {"weight_cache_path": "kept/"}}]})";
  const Finished done = RunNet({"--plugin", PluginFolder("fusebox.xnnpack"), "--config", config});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(FilesBelow(Path("conf/kept/segments")), Contains(EndsWith(".fbpk")));
  EXPECT_FALSE(std::filesystem::exists("kept")) << "in the working directory";
}

TEST(WeightCache, IsForKernelsTooWhereTheDelegateIsTurnedOff) {
  const std::string model = Path("lstm.tflite"), cache = Path("kernels/"), rnn = PluginFolder("fusebox.rnn");
  ASSERT_EQ(
      Fusebox({"convert", WriteSample("keras_lstm"), "-o", model, "--batch", "1", "--plugin", rnn}).status,
      0);
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", model, "--json", "--plugin", rnn, "--delegate", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = Fusebox(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    return done;
  };
  const auto expected = run({}).Json()["outputs"];
  const std::vector<std::string> kept = {"--plugin", PluginFolder("fusebox.xnnpack"), "--weight-cache",
                                         cache};
  const Finished first = run(kept);
  EXPECT_EQ(first.err, "");
  EXPECT_EQ(first.Json()["outputs"], expected);
  const auto files = FilesBelow(cache + "segments");
  EXPECT_THAT(files, testing::SizeIs(1));
  EXPECT_EQ(run(kept).Json()["outputs"], expected);
  EXPECT_EQ(FilesBelow(cache + "segments"), files);
}

TEST(WeightCache, OfADelegateThatIsNotThereIsANotice) {
  const Finished done = RunNet({"--weight-cache", Path("none/")});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("xnnpack"));
}

}  // namespace
}  // namespace fusebox::cli_test
