// SPDX-License-Identifier: Apache-2.0
// Damaged and wrong input: an error that names file, place and reason, exit status 2, nothing written, no
// crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/converter/import/files.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/refusal.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr char kIndex[] = "/variables/variables.index";
constexpr char kData[] = "/variables/variables.data-00000-of-00001";
constexpr char kGraph[] = "/saved_model.pb";

converter::Options Options() {
  converter::Options options;
  options.registry = *Plugins();
  options.batch = 1;
  return options;
}

// Converts what may be damaged: an error says where; what converts must also run.
void ExpectAnswer(const std::string& dir, const std::string& what) {
  const auto before = FilesIn(TestDir());
  const auto written = Convert(dir, Options(), "damaged");
  if (!written) {
    EXPECT_THAT(written.error().message, HasSubstr(dir)) << what;
    EXPECT_TRUE(BlamesInput(written.error())) << what;
    EXPECT_EQ(FilesIn(TestDir()), before) << what;
    return;
  }
  auto session = Open(written->path, *Plugins());
  ASSERT_TRUE(session) << what << ": " << session.error().message;
  EXPECT_TRUE(SucceedsOrBlamesInput(Invoke(**session, RandomInputs(**session, 1)))) << what;
  std::filesystem::remove(written->path);
}

class DamagedSavedModel : public ::testing::TestWithParam<const char*> {};

TEST_P(DamagedSavedModel, CutShortIsAnError) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const std::string file = *dir + GetParam(), whole = ReadAll(file);
  for (size_t i = 0; i < 40; ++i) {
    const size_t size = whole.size() * i / 40;
    WriteAll(file, whole.substr(0, size));
    ExpectAnswer(*dir, std::string(GetParam()) + " of " + std::to_string(size) + " bytes");
  }
  WriteAll(file, whole.substr(0, whole.size() / 2));
  const auto half = Convert(*dir, Options(), "half");
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr(GetParam() + 1));
}

TEST_P(DamagedSavedModel, WithFlippedBitsNeverCrashes) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const std::string file = *dir + GetParam(), whole = ReadAll(file);
  uint64_t random = 88172645463325252;
  for (int i = 0; i < 150; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const uint64_t bit = random % (whole.size() * 8);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    WriteAll(file, damaged);
    ExpectAnswer(*dir, std::string(GetParam()) + " with bit " + std::to_string(bit) + " flipped");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedSavedModel, ::testing::Values(kGraph, kIndex, kData), [](const auto& info) {
      return std::string(info.param == kGraph ? "graph" : info.param == kIndex ? "index" : "data");
    });

TEST(BadInput, DamagedTfliteFilesAreRefusedOrRun) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const auto written = Convert(*dir, Options(), "whole");
  ASSERT_OK(written);
  const std::string whole = ReadAll(written->path), path = TestDir() + "/damaged.tflite";
  const auto registry = *Plugins();
  const auto attempt = [&](const std::string& bytes, const std::string& what) {
    WriteAll(path, bytes);
    auto session = Open(path, registry);
    if (session) {
      EXPECT_TRUE(SucceedsOrBlamesInput(Invoke(**session, RandomInputs(**session, 1)))) << what;
    } else {
      EXPECT_THAT(session.error().message, HasSubstr(path)) << what;
      EXPECT_TRUE(BlamesInput(session.error())) << what;
    }
    return session.has_value();
  };
  for (size_t i = 0; i < 40; ++i) {
    const size_t size = whole.size() * i / 40;
    EXPECT_FALSE(attempt(whole.substr(0, size), std::to_string(size) + " bytes"));
  }
  EXPECT_TRUE(attempt(whole, "the whole file"));
  int read = 0;
  uint64_t random = 88172645463325252;
  for (int i = 0; i < 400; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const uint64_t bit = random % (whole.size() * 8);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    read += attempt(damaged, "bit " + std::to_string(bit));
  }
  // Most bits are weights; some hold the file together.
  EXPECT_GT(read, 200);
  EXPECT_LT(read, 400);
}

TEST(BadInput, TheCommandEndsWithTwoAndWritesNothing) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const std::string out = TestDir() + "/out";
  std::filesystem::create_directories(out);
  for (const char* file : {kGraph, kIndex, kData}) {
    const std::string whole = ReadAll(*dir + file);
    WriteAll(*dir + file, whole.substr(0, whole.size() / 2));
    const auto command = Fusebox({"convert", *dir, "-o", out + "/model.tflite", "--batch", "1"});
    WriteAll(*dir + file, whole);
    EXPECT_EQ(command.status, 2) << file << ": " << command.err;
    EXPECT_THAT(command.err, HasSubstr(*dir + file));
    EXPECT_THAT(FilesIn(out), IsEmpty()) << file;
  }
  EXPECT_EQ(Fusebox({"convert", *dir, "-o", out + "/model.tflite", "--batch", "1"}).status, 0);
  const std::string whole = ReadAll(out + "/model.tflite");
  WriteAll(out + "/half.tflite", whole.substr(0, whole.size() / 2));
  const auto run = Fusebox({"run", out + "/half.tflite"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("half.tflite"));
  EXPECT_EQ(Fusebox({"run", out + "/none.tflite"}).status, 2);
  // A folder that cannot be written to: nothing else is touched.
  const auto nowhere = Fusebox({"convert", *dir, "-o", out + "/missing/model.tflite", "--batch", "1"});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("missing/model.tflite"));
  EXPECT_EQ(FilesIn(out).size(), 2u);
}

TEST(BadInput, MissingVariablesAreNamed) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  std::filesystem::remove_all(*dir + "/variables");
  const auto written = Convert(*dir, Options(), "out");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("variables"));
  const auto command = Fusebox({"convert", *dir, "-o", TestDir() + "/out.tflite"});
  EXPECT_EQ(command.status, 2);
  EXPECT_THAT(command.err, HasSubstr(*dir));
  EXPECT_FALSE(std::filesystem::exists(TestDir() + "/out.tflite"));
}

TEST(BadInput, WrongInputsAtRunTimeNameTheInputAndBothTypes) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const auto written = Convert(*dir, Options(), "out");
  ASSERT_OK(written);
  auto session = Open(written->path, *Plugins());
  ASSERT_OK(session);
  const auto refuse = [&](const Type& type, const char* what) {
    const Status status = (*session)->SetInput(0, Random(type, 1));
    ASSERT_FALSE(status) << what;
    EXPECT_THAT(status.error().message, HasSubstr("x")) << what;
    EXPECT_THAT(status.error().message, HasSubstr(ToString(type))) << what;
    EXPECT_THAT(status.error().message, HasSubstr("f32[1,5,3]")) << what;
  };
  refuse({DType::kI32, {1, 5, 3}}, "another element type");
  refuse({DType::kF32, {1, 5, 4}}, "another width");
  refuse({DType::kF32, {5, 3}}, "another rank");
  refuse({DType::kF32, {1, 0, 3}}, "no steps");
  EXPECT_FALSE((*session)->SetInput(7, Random({DType::kF32, {1, 5, 3}}, 1)));
  const Tensor short_data{{DType::kF32, {1, 5, 3}}, Buffer::Of<float>(std::vector<float>{1, 2})};
  EXPECT_FALSE((*session)->SetInput(0, short_data));
  ASSERT_OK((*session)->SetInput(0, Random({DType::kF32, {1, 5, 3}}, 1)));
  EXPECT_TRUE((*session)->Run());
}

}  // namespace
}  // namespace fusebox::testing
