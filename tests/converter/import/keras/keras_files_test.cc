// SPDX-License-Identifier: Apache-2.0
// Broken, hostile and foreign files: one sentence that names the place, and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>

#include "tests/converter/import/files.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Refusal(const std::string& file) {
  converter::Options options;
  auto registry = Plugins({});
  options.registry = *registry;
  const auto written = Convert(file, options, "out");
  return written ? "converts" : written.error().message;
}

std::string Refusal(const KerasFixture& model) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, model);
  return Refusal(file);
}

KerasCase Dense() {
  return OneLayer("", "Dense", {{"units", 3}}, {1, 4}, {{"kernel", {4, 3}}, {"bias", {3}}});
}

TEST(KerasFiles, TruncatedFilesAreRefused) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, Dense().model);
  const std::string bytes = ReadAll(file);
  size_t refused = 0;
  for (size_t size = 8; size < bytes.size(); size += 97) {
    WriteAll(file, bytes.substr(0, size));
    const std::string why = Refusal(file);
    EXPECT_THAT(why, AllOf(HasSubstr("model.h5: "), ::testing::Not(HasSubstr("internal"))));
    refused += why != "converts";
  }
  EXPECT_GT(refused, 10u);
}

TEST(KerasFiles, FlippedBytesNeverCrash) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, Dense().model);
  const std::string bytes = ReadAll(file);
  size_t refused = 0;
  for (size_t at = 8; at < bytes.size(); at += 23) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x5a);
    WriteAll(file, changed);
    const std::string why = Refusal(file);
    if (why == "converts") continue;
    EXPECT_THAT(why, AllOf(HasSubstr("model.h5: "), ::testing::Not(HasSubstr("internal")))) << at;
    ++refused;
  }
  EXPECT_GT(refused, 10u);
}

// The library follows them until memory is used up.
TEST(KerasFiles, ThatTheLibraryDoesNotSurviveAreRefused) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, Dense().model);
  std::string bytes = ReadAll(file);
  const size_t heap = bytes.find(std::string("HEAP\0\0\0\0", 8));
  ASSERT_NE(heap, bytes.npos);
  const auto number = [&](size_t at) -> uint64_t& { return *reinterpret_cast<uint64_t*>(bytes.data() + at); };
  const uint64_t data = number(heap + 24);
  ASSERT_LT(data + 24, bytes.size());
  number(heap + 16) = 8;   // the first free block,
  number(data + 8) = 8;    // the next,
  number(data + 16) = 16;  // and its size
  WriteAll(file, bytes);
  EXPECT_THAT(
      Refusal(file),
      HasSubstr("model.h5: a broken HDF5 file: the HDF5 library crashes, hangs or runs out of memory"));
}

TEST(KerasFiles, OtherFilesAreNamed) {
  const std::string file = TestDir() + "/model.h5";
  WriteAll(file, "not a model");
  const auto refusal = [](const std::string& path) {
    const auto converted = converter::FromKeras(path).Convert();
    return converted ? "converts" : converted.error().message;
  };
  EXPECT_THAT(refusal(file),
              HasSubstr("model.h5: not a Keras file: neither HDF5 (.h5) nor a zip archive (.keras)"));
  EXPECT_THAT(refusal(TestDir() + "/none.h5"), HasSubstr("none.h5: cannot be opened"));
  EXPECT_THAT(Refusal(file), HasSubstr("model.h5: not supported; expected the folder of a SavedModel"));
}

TEST(KerasFiles, WeightsAloneAreNoModel) {
  KerasFixture model = Dense().model;
  model.config = {};
  EXPECT_THAT(Refusal(model), HasSubstr("weights only, no model"));
}

TEST(KerasFiles, UnknownVersionsAreNamed) {
  KerasFixture model = Dense().model;
  model.version = "9.1.0";
  EXPECT_THAT(Refusal(model), HasSubstr("written by Keras 9.1.0; versions 1 to 3 are supported"));
}

TEST(KerasFiles, LambdaAndOwnLayersAreNamedWithTheirPath) {
  KerasFixture model{
      SequentialConfig({1, 4}, json::array({LayerEntry("Lambda", json::object(), "lambda_3")})), {}};
  EXPECT_THAT(
      Refusal(model),
      HasSubstr("model.h5: layer lambda_3 (Lambda): a Python function, whose code is not in the file"));
  model.config["config"]["layers"][1]["class_name"] = "Mine";
  EXPECT_THAT(Refusal(model), HasSubstr("layer lambda_3 (Mine): unsupported class"));
  model.config["config"]["layers"][1]["registered_name"] = "package>Mine";
  EXPECT_THAT(Refusal(model), HasSubstr("layer lambda_3 (Mine): a custom class (package>Mine)"));
  const json inner = model.config["config"];
  KerasFixture nested{SequentialConfig({1, 4}, json::array({LayerEntry("Sequential", inner, "inner")})), {}};
  nested.config["config"]["layers"][1]["config"]["layers"][1].erase("registered_name");
  EXPECT_THAT(Refusal(nested), HasSubstr("layer inner/lambda_3 (Mine): "));
}

TEST(KerasFiles, WeightsOfAnotherShapeOrNumberAreRefused) {
  KerasFixture model = Dense().model;
  model.weights[0].second[0] = RandomWeight("kernel", {5, 3});
  EXPECT_THAT(Refusal(model), AllOf(HasSubstr("layer layer (Dense): its weight "),
                                    HasSubstr("has the shape [5,3], expected [4,3]")));
  model = Dense().model;
  model.weights[0].second.pop_back();
  EXPECT_THAT(Refusal(model), HasSubstr("the file has 1 weights of it, expected 2"));
  model.weights.clear();
  EXPECT_THAT(Refusal(model),
              HasSubstr("layer layer (Dense): the file has no weights of it; 2 are expected"));
}

TEST(KerasFiles, WeightsInAnotherOrderAreNoticed) {
  KerasFixture model =
      OneLayer("", "BatchNormalization", {{"axis", 1}}, {1, 4},
               {{"gamma", {4}}, {"beta", {4}}, {"moving_variance", {4}}, {"moving_mean", {4}}})
          .model;
  EXPECT_THAT(Refusal(model), HasSubstr("expected its weight moving_mean, found "));
}

TEST(KerasFiles, ConfigurationsThatMakeNoSenseAreRefused) {
  const auto with = [](const char* key, const json& value) {
    KerasFixture model = Dense().model;
    model.config["config"]["layers"][1]["config"][key] = value;
    return Refusal(model);
  };
  EXPECT_THAT(with("units", "three"),
              HasSubstr("layer layer (Dense): its configuration has no integer units"));
  EXPECT_THAT(with("activation", "frobnicate"), HasSubstr("unsupported activation frobnicate"));
  EXPECT_THAT(with("name", nullptr), HasSubstr("layer of class Dense has no name"));
  KerasFixture pool = OneLayer("", "MaxPooling2D", {{"pool_size", {0, 2}}}, {1, 4, 4, 1}).model;
  EXPECT_THAT(Refusal(pool), HasSubstr("its pool_size [0,2] should be 2 numbers, each at least 1"));
  KerasFixture reshape = OneLayer("", "Reshape", {{"target_shape", {5}}}, {1, 4}).model;
  EXPECT_THAT(Refusal(reshape), HasSubstr("does not have the elements of target_shape [5]"));
}

TEST(KerasFiles, CallsInACircleAndReferencesToNothingAreRefused) {
  const auto functional = [](const std::string& from) {
    json config = SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 3}})}))["config"];
    for (json& layer : config["layers"]) layer["inbound_nodes"] = json::array();
    config["layers"][1]["inbound_nodes"] = json::array({json::array({{from, 0, 0, json::object()}})});
    config["input_layers"] = json::array({{"x", 0, 0}});
    config["output_layers"] = json::array({{"layer", 0, 0}});
    KerasFixture model = Dense().model;
    model.config = {{"class_name", "Functional"}, {"config", config}};
    return Refusal(model);
  };
  EXPECT_EQ(functional("x"), "converts");
  EXPECT_THAT(functional("layer"), HasSubstr("layer layer (Dense): call 0 depends on its own result"));
  EXPECT_THAT(functional("nobody"), HasSubstr("it refers to layer nobody, which does not exist"));
}

TEST(KerasFiles, ATensorWithoutItsHistoryIsRefused) {
  json config = SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 3}})}))["config"];
  config["layers"][0]["inbound_nodes"] = json::array();
  config["layers"][1]["inbound_nodes"] = json::array(
      {{{"args", json::array({{{"class_name", "__keras_tensor__"}}})}, {"kwargs", json::object()}}});
  config["input_layers"] = json::array({{"x", 0, 0}});
  config["output_layers"] = json::array({{"layer", 0, 0}});
  KerasFixture model = Dense().model;
  model.config = {{"class_name", "Functional"}, {"config", config}};
  EXPECT_THAT(Refusal(model), HasSubstr("layer layer (Dense): a tensor has no keras_history"));
}

TEST(KerasFiles, ConfigurationsNestedWithoutEndAreRefused) {
  json config = json::array();
  for (int i = 0; i < 1000; ++i) config = json::array({config});
  KerasFixture model = Dense().model;
  model.config["config"]["layers"][1]["config"]["units"] = config;
  EXPECT_THAT(Refusal(model), AllOf(HasSubstr("model_config:"), HasSubstr("nest")));
}

TEST(KerasFiles, DatasetsThatClaimMoreThanTheFileHoldsAreRefused) {
  const std::string file = TestDir() + "/model.h5";
  KerasFixture model = Dense().model;
  model.config["config"]["layers"][0]["config"]["batch_input_shape"] = {1, 1 << 28};
  WriteH5(file, model);
  const hid_t h5 = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const std::string name = "model_weights/layer/layer/kernel:0";
  H5Ldelete(h5, name.c_str(), H5P_DEFAULT);
  const hsize_t dims[] = {1 << 28, 3};
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  H5Dclose(H5Dcreate2(h5, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(h5);
  EXPECT_THAT(Refusal(file), HasSubstr("kernel:0: it has 0 bytes in the file, but should have 3221225472"));
}

// Packed twice, zeros shrink to next to nothing: more than any honest packing does.
TEST(KerasFiles, DatasetsThatUnpackToTooMuchAreRefused) {
  const std::string file = TestDir() + "/model.h5";
  KerasFixture model = Dense().model;
  constexpr hsize_t kRows = 1 << 22;
  model.config["config"]["layers"][0]["config"]["batch_input_shape"] = {1, kRows};
  WriteH5(file, model);
  const hid_t h5 = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const std::string name = "model_weights/layer/layer/kernel:0";
  H5Ldelete(h5, name.c_str(), H5P_DEFAULT);
  const hsize_t dims[] = {kRows, 3};
  const hid_t space = H5Screate_simple(2, dims, nullptr), packed = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(packed, 2, dims);
  for (int i = 0; i < 2; ++i) H5Pset_deflate(packed, 9);
  const hid_t dataset = H5Dcreate2(h5, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, packed, H5P_DEFAULT);
  const std::vector<float> zeros(kRows * 3);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data()), 0);
  H5Dclose(dataset);
  H5Pclose(packed);
  H5Sclose(space);
  H5Fclose(h5);
  ASSERT_LT(std::filesystem::file_size(file), 100000u);
  EXPECT_THAT(Refusal(file), AllOf(HasSubstr("kernel:0: it has "), HasSubstr("but should have 50331648")));
}

// What lies outside the file is never looked at, whatever links say.
TEST(KerasFiles, LinksOutOfTheFileAreNotFollowed) {
  const std::string file = TestDir() + "/model.h5", other = TestDir() + "/other.h5";
  WriteH5(file, Dense().model);
  WriteH5(other, Dense().model);
  const hid_t h5 = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const std::string name = "model_weights/layer/layer/kernel:0";
  H5Ldelete(h5, name.c_str(), H5P_DEFAULT);
  H5Lcreate_external(other.c_str(), name.c_str(), h5, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(h5);
  EXPECT_THAT(Refusal(file), HasSubstr("no dataset model_weights/layer/layer/kernel:0"));
}

TEST(KerasFiles, ArchivesWithoutTheirMembersAreRefused) {
  const std::string file = TestDir() + "/model.keras";
  WriteZip(file, {{"readme", "hello"}});
  EXPECT_THAT(
      Refusal(file),
      HasSubstr("model.keras: not a Keras file: the archive has no config.json; unpack other archives"));
  WriteZip(file, {{"config.json", Dense().model.config.dump()}});
  EXPECT_THAT(Refusal(file), HasSubstr("the archive has no model.weights.h5"));
  WriteZip(file, {{"config.json", "{"}, {"model.weights.h5", ""}});
  EXPECT_THAT(Refusal(file), HasSubstr("config.json:1:"));
  WriteZip(file, {{"config.json", Dense().model.config.dump()}, {"model.weights.h5", "no"}});
  EXPECT_THAT(Refusal(file), HasSubstr("model.weights.h5: "));
}

TEST(KerasFiles, BrokenArchivesAreRefused) {
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, Dense().model.config,
             {{"layers/dense/vars/0", Floats({4, 3}, std::vector<float>(12, 1))}});
  EXPECT_THAT(
      Refusal(file),
      HasSubstr("layer layer (Dense): the file has no weight bias of it (looked for layers/dense/vars/1)"));
  const std::string bytes = ReadAll(file);
  for (size_t at = 0; at < bytes.size(); at += 13) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x5a);
    WriteAll(file, changed);
    EXPECT_NE(Refusal(file), "converts");
  }
}

TEST(KerasFiles, AnArchiveThatUnpacksToTooMuchIsRefused) {
  const std::string file = TestDir() + "/model.keras";
  WriteZip(file, {{"config.json", std::string(size_t{300} << 20, ' ')}});
  EXPECT_LT(std::filesystem::file_size(file), 1u << 20);
  EXPECT_THAT(Refusal(file), HasSubstr("config.json: 314572800 bytes, more than the limit of 268435456"));
}

TEST(KerasFiles, TheCommandPicksTheReaderByContent) {
  const std::string dir = TestDir(), out = dir + "/out.tflite";
  WriteH5(dir + "/model.bin", Dense().model);
  const CommandResult done = Fusebox({"convert", dir + "/model.bin", "-o", out});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(out));
  KerasFixture broken = Dense().model;
  broken.weights.clear();
  WriteH5(dir + "/broken.h5", broken);
  const CommandResult refused = Fusebox({"convert", dir + "/broken.h5", "-o", dir + "/none.tflite"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("broken.h5: layer layer (Dense): "));
  EXPECT_FALSE(std::filesystem::exists(dir + "/none.tflite"));
}

}  // namespace
}  // namespace fusebox::testing
