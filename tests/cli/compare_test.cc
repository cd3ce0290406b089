// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/fusion/fusion.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;

TEST(Compare, AModelIsEqualToItself) {
  const std::string a = WriteAddModel("a.tflite", 1), b = WriteAddModel("b.tflite", 1);
  const Finished done = Fusebox({"compare", a, b, "--runs", "3", "--atol", "0", "--rtol", "0"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("equal: "));
}

TEST(Compare, ADifferenceIsExitStatusOneAndIsPlaced) {
  const std::string a = WriteAddModel("a.tflite", 1), b = WriteAddModel("b.tflite", 1.5);
  const Finished done = Fusebox({"compare", a, b});
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_THAT(done.out, HasSubstr("differs"));
  EXPECT_THAT(done.out, HasSubstr("largest difference 0.5"));
  const nlohmann::json json = Fusebox({"compare", a, b, "--json"}).Json();
  EXPECT_EQ(json["equal"], false);
  EXPECT_NEAR(json["max_absolute"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(json["outputs"][0]["name"], "y");
  EXPECT_THAT(json["outputs"][0]["where"].get<std::string>(), HasSubstr("["));
}

TEST(Compare, ToleranceDecides) {
  const std::string a = WriteAddModel("a.tflite", 1), b = WriteAddModel("b.tflite", 1.5);
  EXPECT_EQ(Fusebox({"compare", a, b, "--atol", "0.6", "--rtol", "0"}).status, 0);
  EXPECT_EQ(Fusebox({"compare", a, b, "--atol", "0.4", "--rtol", "0"}).status, 1);
  EXPECT_EQ(Fusebox({"compare", a, b, "--atol", "0", "--rtol", "1"}).status, 0);
}

// Writes the file with its ADD as an op that a rule of acme.sums made.
std::string WriteFused(const std::string& add) {
  auto module = tflite::ReadFile(add);
  EXPECT_TRUE(module) << module.error().message;
  (*module)->functions[0]->nodes[0]->fused =
      std::make_shared<const Provenance>(Provenance{"acme.sums", "1.2.0", "acme.sum", "acme.sum"});
  RecordFused(**module);
  const std::string path = Path("fused.tflite");
  EXPECT_TRUE(tflite::WriteFile(**module, path));
  return path;
}

TEST(Compare, AFusedOpMayDifferByTheToleranceOfItsRule) {
  const std::string folder = Path("sums");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/fusebox-plugin.json") << R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "acme.sums", "version": "1.2.0", "namespace": "acme"},
 "provides": {"rules": [{"id": "acme.sum", "implements": ["acme.sum"], "emits": [{"builtin": "ADD"}],
                         "rewrite": {"tolerance": {"atol": 0.6}}}]}})";
  const std::string fused = WriteFused(WriteAddModel("a.tflite", 1)), plain = WriteAddModel("b.tflite", 1.5);
  const Finished within = Fusebox({"compare", fused, plain, "--plugin", folder});
  EXPECT_EQ(within.status, 0) << within.err;
  EXPECT_THAT(within.out, HasSubstr("(atol 0.6, rtol 1e-05)"));
  EXPECT_EQ(Fusebox({"compare", plain, fused, "--plugin", folder}).status, 0);
  EXPECT_EQ(Fusebox({"compare", fused, plain}).status, 1);
  EXPECT_EQ(Fusebox({"compare", fused, plain, "--plugin", folder, "--rtol", "1e-5"}).status, 1);
}

TEST(Compare, SpecialValuesAreEqualOnlyToThemselves) {
  const std::string nan = WriteAddModel("nan.tflite", NAN), inf = WriteAddModel("inf.tflite", INFINITY);
  const std::string one = WriteAddModel("one.tflite", 1);
  EXPECT_EQ(Fusebox({"compare", nan, nan}).status, 0);
  EXPECT_EQ(Fusebox({"compare", inf, inf}).status, 0);
  EXPECT_EQ(Fusebox({"compare", nan, one, "--atol", "1e30"}).status, 1);
  EXPECT_EQ(Fusebox({"compare", one, nan, "--atol", "1e30"}).status, 1);
  EXPECT_EQ(Fusebox({"compare", inf, one, "--atol", "1e30"}).status, 1);
  EXPECT_EQ(Fusebox({"compare", one, inf, "--atol", "1e30"}).status, 1);
  const nlohmann::json json = Fusebox({"compare", nan, one, "--json"}).Json();
  EXPECT_TRUE(json["max_absolute"].is_null());
}

TEST(Compare, ModelsThatTakeOtherInputsCannotBe) {
  Module module;
  Function& f = module.Add("main");
  f.outputs = {f.AddInput({DType::kF32, {2, 4}}, "x")};
  const std::string other = Path("other.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, other));
  const Finished done = Fusebox({"compare", WriteAddModel("a.tflite", 1), other});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("f32[2,3] in one model and f32[2,4] in the other"));
}

TEST(Compare, ABrokenFileIsNamed) {
  std::ofstream(Path("broken.tflite")) << "TFL3";
  const Finished done = Fusebox({"compare", WriteAddModel("a.tflite", 1), Path("broken.tflite")});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("broken.tflite"));
}

}  // namespace
}  // namespace fusebox::cli_test
